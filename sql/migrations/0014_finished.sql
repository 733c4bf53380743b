-- The last moment at which an end was announced: beside those of the queues (announced_…), one of which may be named finished.
create sequence pawl_queues.finished minvalue 0;
