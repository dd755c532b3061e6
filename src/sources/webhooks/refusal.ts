/** Refusals of the webhook API, with the status and the exact text that its clients know. Answered in one place (routes/reply.ts). */
const REFUSALS = {
  resource_unknown: [404, 'Request resource not found'],
  condition_missing: [400, 'Bad Request: Update is missing `If-Unmodified-Since` header '],
  condition_failed: [412, 'Update failed due to mismatch of `If-Unmodified-Since` header value'],
  form_expected: [415, 'Media type not supported'],
  callback_invalid: [400, 'callbackUrl must be an absolute http or https URL'],
  callback_refused: [400, 'callbackUrl points to an address range that is refused here'],
  type_invalid: [400, 'type must be push or pull'],
  text_invalid: [400, 'ids, names and tokens have at most 255 characters, none of them U+0000'],
  name_invalid: [400, 'ids and names cannot contain control characters'],
  consumer_has_jobs: [409, 'consumer has delivery jobs'],
  channel_token_wrong: [403, 'channel token does not match'],
  producer_token_wrong: [403, 'producer token does not match'],
  consumer_token_wrong: [403, 'consumer token does not match'],
  producer_unknown: [401, 'producer could not be found'],
  consumer_unknown: [401, 'consumer could not be found'],
  body_empty: [400, 'Necessary information missing for persistence'],
  body_too_large: [413, 'request body too large'],
  body_late: [408, 'request body took too long'],
  schedule_invalid: [400, 'invalid date format for X-Broker-Scheduled-For, expected ISO-8601/RFC3339 format'],
  /** The text says how many minutes the setting asks for. */
  schedule_too_soon: [412, 'scheduled time must be at least 2 minutes in the future'],
  message_duplicate: [409, 'duplicate message id for channel'],
  scheduled_duplicate: [409, 'duplicate scheduled message id for channel'],
  consumer_not_pull: [412, 'consumer not pull based'],
  job_unknown: [404, 'job could not be found'],
  job_of_another: [401, 'job could not be found'],
  job_not_dead: [400, 'job could not be found'],
  limit_invalid: [400, 'invalid query parameter'],
  transition_invalid: [400, 'invalid transition request'],
  timeout_misplaced: [400, 'timeout provided with invalid state'],
  request_body_invalid: [400, 'invalid request body'],
  requeue_token_wrong: [400, '`requeue` form param must match consumer token'],
  not_exhausted: [404, 'job is not dead or retry not exhausted'],
  both_cursors: [
    400,
    'can not decide on pagination direction! Both after and before provided or pagination is nil',
  ],
  signature_missing: [401, 'missing X-Broker-Signature header'],
  signature_malformed: [401, 'malformed X-Broker-Signature header'],
  signature_untimely: [403, 'request timestamp outside tolerance window'],
  signature_wrong: [403, 'invalid signature'],
  internal: [500, 'internal error'],
} as const satisfies Readonly<Record<string, readonly [status: number, text: string]>>

export type RefusalName = keyof typeof REFUSALS

export class Refused extends Error {
  override readonly name = 'Refused'
  readonly refusal: RefusalName
  readonly status: number

  /** `text` replaces the table's where it depends on a setting. */
  constructor(refusal: RefusalName, text: string = REFUSALS[refusal][1]) {
    super(text)
    this.refusal = refusal
    this.status = REFUSALS[refusal][0]
  }
}
