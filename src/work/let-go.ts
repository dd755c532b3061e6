/**
 * Locks of servers that stand still. A server that is frozen, or whose machine is gone, in the middle of a transaction keeps its locks
 * as long as PostgreSQL believes in its connection, which can be hours; nobody could go on with its run, or cancel it. So whoever
 * locks one asks PostgreSQL to end the transaction when nothing was heard of it for as long as its lease lasts.
 */

/** Selected beside what is locked. It holds until the transaction ends. */
export const LET_GO = `set_config('idle_in_transaction_session_timeout', '3s', true) AS let_go`
