/**
 * Every error that a user can meet: code, message, HTTP status per facade, whether a retry may help. `docs/errors.md` is generated from it.
 * Texts of the queue API are part of its contract: clients split them at the first ';', and the part before it is constant.
 */

interface ErrorEntry {
  readonly message: string
  /** Status on `/v1/`. */
  readonly queues: number
  /** Status on `/api/`, where it does not follow from `queues`. */
  readonly api?: number
  readonly retryable: boolean
}

const invalid = <M extends string>(message: M) => ({ message, queues: 400, retryable: false }) as const
const refused = <M extends string>(message: M) => ({ message, queues: 453, retryable: false }) as const
const office = <M extends string>(message: M, api: 400 | 404 | 405 | 409 | 413) =>
  ({ message, queues: 400, api, retryable: false }) as const
const again = <M extends string>(message: M) => ({ message, queues: 454, retryable: true }) as const
const away = <M extends string>(message: M) => ({ message, queues: 454, api: 503, retryable: true }) as const
const limited = <M extends string>(message: M) =>
  ({ message, queues: 429, api: 429, retryable: true }) as const
const transport = <M extends string>(message: M, queues: 400 | 401 | 403 | 421 | 455 | 501) =>
  ({ message, queues, retryable: false }) as const

export const ERRORS = {
  // Looking up a queue
  queue_name_empty: invalid('queue name is invalid; queue name cannot be empty'),
  queue_name_tilde: invalid("queue name is invalid; '{name}' cannot contain '~' character"),
  queue_name_whitespace: invalid("queue name is invalid; '{name}' cannot contain whitespace"),
  queue_name_too_long: invalid("queue name is invalid; cannot be greater than '512' characters"),
  queue_name_nul: invalid('queue name is invalid; it cannot contain the null character'),
  queue_name_control: invalid('queue name is invalid; it cannot contain control characters'),
  queue_unknown: invalid("queue does not exist; no such queue named '{name}'"),
  queue_exists: invalid("invalid queue; '{name}' already exists"),
  queue_in_use: invalid(
    "queue is in use; '{name}' is the dead_queue of '{other}', use force to delete it anyway",
  ),
  partition_unknown: invalid("partition is invalid; '{partition}' is not a valid partition"),

  // Timeouts of requests
  request_timeout_malformed: invalid(
    'request timeout is invalid; {reason} - expected format: 900ms, 5m or 15m',
  ),
  request_timeout_required: invalid("request timeout is required; '5m' is recommended, 15m is the maximum"),
  request_timeout_too_long: invalid(
    "request timeout is invalid; maximum timeout is '15m' but '{given}' was requested",
  ),
  request_timeout_too_short: invalid(
    "request timeout is invalid; minimum timeout is '10ms' but '{given}' was requested",
  ),

  // produce, lease, complete, retry
  produce_empty: invalid('items cannot be empty; at least one item is required'),
  produce_too_many: invalid('items is invalid; max_produce_batch_size is 1000 but received {count}'),
  client_id_empty: invalid('invalid client id; cannot be empty'),
  client_id_waiting: invalid(
    'duplicate client id; a client cannot make multiple leased requests to the same queue',
  ),
  batch_size_too_small: invalid('invalid batch size; must be greater than zero'),
  batch_size_too_large: invalid(
    'invalid batch size; max_lease_batch_size is 1000, but {count} was requested',
  ),
  complete_empty: invalid('ids is invalid; list of ids cannot be empty'),
  complete_too_many: invalid('ids is invalid; max_complete_batch_size is 1000 but received {count}'),
  retry_empty: invalid('items is invalid; list of items cannot be empty'),
  retry_too_many: invalid('items is invalid; max_complete_batch_size is 1000 but received {count}'),
  item_id_malformed: invalid("invalid storage id; '{id}': {reason}"),
  item_unknown: invalid("invalid storage id; '{id}' does not exist"),
  complete_not_leased: invalid("item(s) cannot be completed; '{id}' is not marked as leased"),
  retry_not_leased: invalid("item(s) cannot be retried; '{id}' is not marked as leased"),
  extend_not_leased: invalid("item(s) cannot be extended; '{id}' is not marked as leased"),
  dedupe_key_too_long: invalid("dedupe key is invalid; cannot be greater than '512' characters"),
  lease_timed_out: again('request timeout; no items are in the queue, try again'),
  queue_overloaded: again('queue is overloaded; try again later'),
  store_write_failed: again('internal error, try your request again'),
  queue_stopping: refused('queue is shutting down'),
  service_stopping: refused('service is shutting down'),

  // create and update
  lease_timeout_too_long_text: invalid("lease timeout is invalid; cannot be greater than '15' characters"),
  lease_timeout_malformed: invalid('lease timeout is invalid; {reason} - expected format: 8m, 15m or 1h'),
  lease_timeout_empty: invalid('lease timeout is invalid; cannot be empty'),
  lease_timeout_negative: invalid('lease timeout is invalid; cannot be negative'),
  expire_timeout_too_long_text: invalid("expire timeout is invalid; cannot be greater than '15' characters"),
  expire_timeout_malformed: invalid('expire timeout is invalid; {reason} - expected format: 60m, 2h or 24h'),
  expire_timeout_empty: invalid('expire timeout is invalid; cannot be empty'),
  expire_timeout_negative: invalid('expire timeout is invalid; cannot be negative'),
  lease_exceeds_expire: invalid(
    'lease timeout is too long; {lease} cannot be greater than the expire timeout {expire}',
  ),
  namespace_too_long: invalid("namespace name is invalid; cannot be greater than '256' characters"),
  namespace_empty: invalid('namespace name is invalid; cannot be empty'),
  namespace_whitespace: invalid("namespace name is invalid; '{name}' cannot contain whitespace"),
  namespace_tilde: invalid("namespace name is invalid; '{name}' cannot contain '~' character"),
  namespace_colon: invalid("namespace name is invalid; '{name}' cannot contain ':' character"),
  namespace_unknown: refused("namespace does not exist; '{name}' was not found"),
  reference_too_long: invalid("reference field is invalid; cannot be greater than '2000' characters"),
  max_attempts_too_large: invalid('max attempts is invalid; cannot be greater than 65536'),
  max_attempts_negative: invalid('max attempts is invalid; cannot be negative number'),
  partitions_too_few: invalid('partitions is invalid; cannot be less than 1'),
  partitions_too_many: invalid('partitions is invalid; cannot be greater than 1024'),

  // Dead queues
  dead_queue_too_long: invalid("dead queue is invalid; cannot be greater than '500' characters"),
  dead_queue_whitespace: invalid("dead queue is invalid; '{name}' cannot contain whitespace"),
  dead_queue_tilde: invalid("dead queue is invalid; '{name}' cannot contain '~' character"),
  dead_queue_nul: invalid('dead queue is invalid; it cannot contain the null character'),
  on_death_invalid: invalid("on_death is invalid; '{given}' is not allowed, give 'letter' or 'delete'"),
  dead_queue_self: invalid('dead_queue is invalid; dead_queue cannot reference itself'),
  dead_queue_unknown: invalid("dead_queue does not exist; '{name}' was not found, create it first"),
  dead_queue_chained: invalid(
    "dead_queue is invalid; '{name}' already has its own dead_queue configured; a dead_queue cannot have its own dead_queue",
  ),
  dead_queue_in_use: invalid(
    "dead_queue is invalid; '{name}' is used as a dead_queue; a dead_queue cannot have its own dead_queue",
  ),

  // Lists, imports, deletes, clear
  limit_negative: invalid('limit is invalid; limit cannot be negative'),
  limit_too_large: invalid('limit is invalid; cannot be greater than {max}'),
  pivot_tilde: invalid("pivot is invalid; '{pivot}' cannot contain '~' character"),
  import_empty: invalid('items is invalid; cannot be empty'),
  delete_empty: invalid('ids is invalid; cannot be empty'),
  clear_nothing: invalid("invalid clear request; one of 'queue', 'scheduled' must be true"),

  // Letters, history and engines
  parameter_invalid: office('{parameter} is invalid; {reason}', 400),
  engine_unknown: office("engine is unknown; '{engine}' is none of {known}", 400),
  operation_unknown: office("operation is unknown; '{operation}' is none of {known}", 400),
  status_unknown: office("status is unknown; '{status}' is none of {known}", 400),
  source_unknown: office("source is unknown; '{source}' is none of {known}", 400),
  continuation_token_invalid: office('continuationToken is invalid; {reason}', 400),
  letter_unknown: office("letter does not exist; engine '{engine}' has no letter '{rowKey}'", 404),
  history_unknown: office("history entry does not exist; engine '{engine}' has no entry '{rowKey}'", 404),
  signature_unknown: office("signature does not exist; no letter ever had '{signature}'", 404),
  letter_status_wrong: office(
    'letter cannot be {act}; it is {status}, and only {needed} letters can be',
    409,
  ),
  letter_leased: office(
    "letter is leased; a consumer of its dead queue '{queue}' holds it, try again when the lease is over",
    409,
  ),
  letter_in_flight: office(
    "letter is on its way; its item in queue '{queue}' is being worked on, try again when that is over",
    409,
  ),
  letter_without_queue: office(
    "letter cannot be retried; engine '{engine}' has no queue and the letter names none",
    409,
  ),
  letter_queue_gone: office(
    "letter cannot be retried; its queue '{queue}' does not exist, create it and try again",
    409,
  ),
  letter_outbox_unknown: office(
    "letter cannot be moved; its outbox '{outbox}' is not configured on this server",
    409,
  ),
  letter_row_gone: office(
    "letter cannot be retried; outbox '{outbox}' has no row '{id}' any more, discard the letter",
    409,
  ),
  letter_outbox_away: away(
    "letter cannot be moved now; the database of outbox '{outbox}' does not answer, try again",
  ),

  letter_job_gone: office("letter cannot be moved; its webhook job '{id}' is gone, discard the letter", 409),
  letter_consumer_gone: office(
    "letter cannot be restored; consumer '{consumer}' of channel '{channel}' does not exist any more",
    409,
  ),
  letter_message_gone: office(
    "letter cannot be restored; message '{message}' of channel '{channel}' does not exist any more",
    409,
  ),

  // Letters of Kafka
  kafka_not_enabled: office(
    'letter cannot be retried; this server has no kafka section with enabled: true in its configuration',
    409,
  ),
  kafka_library_missing: office(
    'Kafka cannot be used; its client library is not installed, install it with: {command}',
    409,
  ),
  letter_service_unknown: office(
    'letter cannot be retried; its service is not known here, reassign it with: bartleby kafka reassign {dlqId} SERVICE [--topic TOPIC]',
    409,
  ),
  letter_not_next: office(
    "letter cannot be retried yet; '{before}' has the same key and died before it, resolve that one first",
    409,
  ),
  letter_service_busy: office(
    "letter cannot be moved now; service '{service}' has another event on its way, try again",
    409,
  ),
  letter_uncertain: office(
    "letter may be on its way already; nobody knows what became of event '{eventId}', send the same again with resend=true or discard it",
    409,
  ),
  letter_guarded: office('letter must not be published as it is; {reasons}', 409),
  letter_processor_failed: office('letter cannot be retried; its processor failed: {message}', 409),
  letter_processor_discards: office(
    'letter cannot be retried; its processor discards it, discard it instead',
    409,
  ),
  letter_kafka_away: away('letter cannot be retried now; Kafka does not take it: {reason}'),

  // Letters of Azure tables
  azure_not_configured: office(
    'letter cannot be retried; this server has no engines.tables.storageAccountName in its configuration',
    409,
  ),
  azure_library_missing: office(
    'tables in Azure cannot be used; a client library is not installed, install it with: {command}',
    409,
  ),
  azure_account_wrong: office(
    "the connection string is of account '{account}'; engines.tables.storageAccountName is '{name}'",
    409,
  ),
  azure_connection_unread: office(
    "the connection string cannot be read; '{path}' of engines.tables.connectionStringFile: {reason}",
    409,
  ),
  letter_entity_gone: office(
    "letter cannot be retried; table '{table}' has no entity '{rowKey}' any more, discard the letter",
    409,
  ),
  letter_entity_busy: office('letter cannot be moved now; its message is being sent, try again', 409),
  letter_send_unknown: office(
    "letter may be on its way already; nobody knows whether its message reached queue '{queue}', look there and say so with: bartleby azure settle",
    409,
  ),
  letter_send_known: office(
    'nothing is to be settled; it is known what became of the message of this letter',
    409,
  ),
  letter_message_refused: office('letter cannot be retried as it is; {reason}', 409),
  letter_azure_away: away('letter cannot be moved now; the storage account does not take it: {reason}'),

  // Redrives
  redrive_unknown: office("redrive does not exist; no redrive has the id '{id}'", 404),
  redrive_started: office('redrive cannot be started; it was started by {by} at {at}, watch it instead', 409),
  redrive_plan_expired: office(
    'redrive cannot be started; its plan was valid until {at}, plan it again',
    409,
  ),
  redrive_empty: office('redrive cannot be started; there is no letter in its plan', 409),
  redrive_state_wrong: office('redrive cannot be {act}; it is {state}, and must be {needed}', 409),
  redrive_planning_busy: away(
    'too many plans at once; this server makes {limit} redrive plans already, try again later',
  ),

  // Runs
  run_unknown: office("run does not exist; no run has the id '{id}'", 404),
  run_broken_off: office(
    'run {id} did not come to its end; it is {state} after {done}; bartleby runs show {id} says why',
    409,
  ),
  run_state_wrong: office('run cannot be {act}; it is {state}, and must be {needed}', 409),

  // Outboxes
  outbox_option_invalid: office('option {option} is invalid; {reason}', 400),
  outbox_message_invalid: office('outbox message is invalid; {field} {reason}', 400),
  outbox_key_part_empty: office('idempotency key cannot be made; {part} is empty', 400),
  outbox_table_missing: office(
    "table '{table}' does not exist; create it with: bartleby outbox adopt --url … --table {table}",
    409,
  ),
  outbox_columns_missing: office(
    "table '{table}' is no outbox yet; it lacks {columns}; add them with: bartleby outbox adopt --url … --table {table}",
    409,
  ),
  outbox_unknown: office("outbox is unknown; '{name}' is none of {known}", 404),

  // Webhooks
  channel_unknown: office("channel does not exist; no channel has the id '{channel}'", 404),
  consumer_unknown: office("consumer does not exist; channel '{channel}' has no consumer '{consumer}'", 404),

  json_malformed: office('body is invalid; {reason}', 400),
  method_unknown: office("http method '{method}' not allowed; only {allowed}", 405),

  // Test control
  clock_not_frozen: invalid('clock cannot be advanced; freeze it first'),
  clock_backwards: invalid("clock cannot be advanced; '{given}' is negative"),
  clock_malformed: invalid("invalid clock request; {reason}, give exactly one of 'freeze', 'advance'"),

  // Transport
  method_not_allowed: invalid("http method '{method}' not allowed; only POST"),
  authorization_malformed: transport('invalid authorization header format', 401),
  token_missing: transport("missing token; send it as 'Authorization: Bearer <token>'", 401),
  token_unknown: transport('unknown token; it may have been revoked', 401),
  kafka_token_missing: transport(
    "missing token for Kafka; letters of Kafka are acted on with one of its tokens, send it as 'Authorization: Bearer <token>' or sign in with it",
    401,
  ),
  role_insufficient: transport(
    "permission denied; this call needs the role '{needed}' and your token has '{role}'",
    403,
  ),
  host_unknown: transport(
    "unknown host; '{host}' is none of the names that this server is served under, use localhost or put the name under http.allowedHosts",
    421,
  ),
  host_twice: transport(
    "two hosts; a request names one in 'Host', whoever stands before this server must not add another",
    400,
  ),
  origin_foreign: transport('foreign origin; a page of another site cannot use this server', 403),
  origin_missing: transport(
    "missing origin; a call with the cookie of a session must name its page in 'Origin', other programs send 'Authorization: Bearer <token>'",
    403,
  ),
  wrong_tokens_limited: limited(
    'too many wrong tokens; from your address none but those that it has used before is taken for another {seconds} s, try again then',
  ),
  strangers_limited: limited(
    'too many connections without a token; your address has {limit} of them already, send a token or close some',
  ),
  listeners_of_caller_full: limited(
    "too many listeners; '{name}' has {limit} of them already, close a console somewhere",
  ),
  listeners_full: away(
    'too many listeners; {limit} follow this server already, close a console somewhere or try again later',
  ),
  path_unknown: transport('no such method; {path}', 501),
  body_too_large: { ...invalid('request body exceeds {limit} limit'), api: 413 },
  body_late: {
    message: 'request body took too long; it must be complete within {seconds} s, send it again',
    queues: 408,
    retryable: true,
  },
  body_undecodable: transport('{reason}', 455),
  content_type_unknown: transport(
    "Content-Type header '{given}' is invalid format or unrecognized content type",
    455,
  ),
  accept_unknown: transport(
    "Accept header '{given}' is invalid format or unrecognized content type, only [application/json,application/protobuf] are supported by this method",
    455,
  ),
  internal: { message: 'Internal Error', queues: 500, retryable: true },
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof ERRORS

type Placeholders<T extends string> = T extends `${string}{${infer Name}}${infer Rest}`
  ? Name | Placeholders<Rest>
  : never

type Details<C extends ErrorCode> = Readonly<
  Record<Placeholders<(typeof ERRORS)[C]['message']>, string | number>
>

/** The caller can understand and act on it. Anything else thrown is a bug or an outage. */
export class BartlebyError extends Error {
  override readonly name = 'BartlebyError'
  readonly code: ErrorCode
  /** For programs. */
  readonly details: Readonly<Record<string, string | number>>

  constructor(
    code: ErrorCode,
    message: string,
    details: Readonly<Record<string, string | number>> = {},
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.code = code
    this.details = details
  }

  get retryable(): boolean {
    return ERRORS[this.code].retryable
  }
}

/** `details` fill the message template. */
export function failure<C extends ErrorCode>(
  code: C,
  ...[details, options]: Placeholders<(typeof ERRORS)[C]['message']> extends never
    ? [details?: undefined, options?: ErrorOptions]
    : [details: Details<C>, options?: ErrorOptions]
): BartlebyError {
  const given: Readonly<Record<string, string | number>> = details ?? {}
  const message = ERRORS[code].message.replace(/\{(\w+)\}/g, (_, name: string) => String(given[name]))
  return new BartlebyError(code, message, given, options)
}

export const refuse = (parameter: string, reason: string): BartlebyError =>
  failure('parameter_invalid', { parameter: parameter.toWellFormed(), reason })
