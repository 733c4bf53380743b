-- Functions of earlier versions whose place others have taken, dropped in the transaction in which nothing calls them any more.
drop function if exists pawl.settle_results(pawl.step_result[]), pawl.settle_odd_results(pawl.step_result[], bigint[]),
  pawl.hand_in_results(pawl.step_result[]), pawl.recount_tasks(uuid[]);
