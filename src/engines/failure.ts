/** Failures that the runtime of engines adds to those of the handlers. */

/** A handler did not return in time. It is left to itself, and what it still returns is ignored. */
export class HandlerTimedOut extends Error {
  override readonly name = 'HandlerTimedOut'
}

/** The message is no longer this worker's: its lease ended and somebody else may have it. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost'
}

/** The engine was stopped while the handler ran. */
export class EngineStopped extends Error {
  override readonly name = 'EngineStopped'
}
