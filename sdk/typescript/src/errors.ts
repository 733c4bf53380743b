/** What handlers throw, why a step's work may no longer be wanted, and what the client throws. */
import type { Task } from "./task.js";

/** The root of this package's errors. */
export class PawlError extends Error {
  constructor(message?: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** What an error says beside its message. */
export interface FailureOptions {
  /** A short word by which failures are counted and told apart. Default: the name of the error's class. */
  type?: string;
  cause?: unknown;
}

/**
 * Thrown by a handler: the attempt has failed, and the step is tried again as often as its template says. Any other error
 * means the same; this one can name its type.
 */
export class Failed extends PawlError {
  readonly type: string;
  readonly retryable: boolean = true;
  readonly rejected: boolean = false;
  readonly afterMs: number = 0;

  constructor(message = "", options: FailureOptions = {}) {
    super(message, { cause: options.cause });
    this.type = options.type ?? "";
  }
}

/** Thrown by a handler: trying again will not cure it, the step fails at once. */
export class Permanent extends Failed {
  override readonly retryable = false;
}

/** Thrown by a handler: it will not do this. The step fails at once, with status rejected. */
export class Rejected extends Failed {
  override readonly retryable = false;
  override readonly rejected = true;
}

/** Thrown by a handler: try again, but not before `afterMs` milliseconds have passed. */
export class RetryAfter extends Failed {
  override readonly afterMs: number;

  constructor(message: string, afterMs: number, options: FailureOptions = {}) {
    super(message, options);
    this.afterMs = Math.max(afterMs, 0) || 0;
  }
}

/** Why the work on a step is no longer wanted: the reason of `step.signal` is one of its subclasses. */
export class Interrupted extends PawlError {}

/** The task or the step was ended by somebody else; the result will not count. */
export class Cancelled extends Interrupted {
  constructor() {
    super("the step was cancelled");
  }
}

/** The lease could not be extended in time; another worker has the step now or soon. */
export class LeaseLost extends Interrupted {
  constructor() {
    super("the lease of the step is lost");
  }
}

/** The step's timeout is over. */
export class TimedOut extends Interrupted {
  constructor() {
    super("the step's timeout is over");
  }
}

/** The worker stops and the grace period is over; an error thrown now hands the step back. */
export class Stopping extends Interrupted {
  constructor() {
    super("the worker stops");
  }
}

/** A worker or client is set up wrongly; the text says what to write instead. */
export class ConfigError extends PawlError {}

/** A value that the database would refuse as JSON: NUL characters, half surrogate pairs, NaN, too large, too deep. */
export class InvalidBody extends PawlError {}

/** The root of what the client throws about tasks. */
export class ClientError extends PawlError {}

/** There is no such task. */
export class UnknownTask extends ClientError {}

/** The command cannot be carried out in the task's present state. */
export class NotPossible extends ClientError {}

/** The task has not ended within the time that wait was given. The task goes on. */
export class WaitTimeout extends ClientError {}

/** A request was refused. */
export class RequestError extends ClientError {
  constructor(
    message: string,
    readonly requestId: string,
    /** The task that exists, when that is why. */
    readonly existingTaskId?: string,
  ) {
    super(message);
  }
}

/** The request cannot be fulfilled: no such template, an input that does not fit its schema. */
export class InvalidRequest extends RequestError {}

/** The template takes only requests with a key. */
export class KeyRequired extends RequestError {}

/** A task with this key is pending or running, and the request said `onDuplicate: "reject"`. */
export class TaskAlreadyExists extends RequestError {}

/** A task with this key has completed, and the request said `onDuplicate: "reject"`. */
export class TaskAlreadyCompleted extends RequestError {}

/** A task with this key, or this request id, exists with another input. */
export class TaskInputMismatch extends RequestError {}

/** The request's key is held by a task that has completed and was removed since. */
export class ResultExpired extends ClientError {}

/** A task that was waited for has ended, and not as completed. */
export class TaskEnded extends ClientError {
  constructor(readonly task: Task) {
    const why = [task.error?.["type"], task.error?.["message"]].filter(Boolean).join(": ");
    super(`task ${task.taskId} ended ${task.status}${why ? `: ${why}` : ""}`);
  }
}

/** The task has failed. */
export class TaskFailed extends TaskEnded {}

/** The task was cancelled. */
export class TaskCancelled extends TaskEnded {}

/** The task's timeout is over. */
export class TaskTimedOut extends TaskEnded {}
