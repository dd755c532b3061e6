/** Refusals of the webhook API, with the status and the exact text that its clients know. Answered in one place (routes/reply.ts). */
export const REFUSALS = {
  resource_unknown: { status: 404, text: 'Request resource not found' },
  condition_missing: {
    status: 400,
    text: 'Bad Request: Update is missing `If-Unmodified-Since` header ',
  },
  condition_failed: {
    status: 412,
    text: 'Update failed due to mismatch of `If-Unmodified-Since` header value',
  },
  form_expected: { status: 415, text: 'Media type not supported' },
  callback_invalid: { status: 400, text: 'callbackUrl must be an absolute http or https URL' },
  callback_refused: { status: 400, text: 'callbackUrl points to an address range that is refused here' },
  type_invalid: { status: 400, text: 'type must be push or pull' },
  text_invalid: {
    status: 400,
    text: 'ids, names and tokens have at most 255 characters, none of them U+0000',
  },
  name_invalid: { status: 400, text: 'ids and names cannot contain control characters' },
  consumer_has_jobs: { status: 409, text: 'consumer has delivery jobs' },
  channel_token_wrong: { status: 403, text: 'channel token does not match' },
  producer_token_wrong: { status: 403, text: 'producer token does not match' },
  consumer_token_wrong: { status: 403, text: 'consumer token does not match' },
  producer_unknown: { status: 401, text: 'producer could not be found' },
  consumer_unknown: { status: 401, text: 'consumer could not be found' },
  body_empty: { status: 400, text: 'Necessary information missing for persistence' },
  body_too_large: { status: 413, text: 'request body too large' },
  body_late: { status: 408, text: 'request body took too long' },
  schedule_invalid: {
    status: 400,
    text: 'invalid date format for X-Broker-Scheduled-For, expected ISO-8601/RFC3339 format',
  },
  /** The text says how many minutes the setting asks for. */
  schedule_too_soon: { status: 412, text: 'scheduled time must be at least 2 minutes in the future' },
  message_duplicate: { status: 409, text: 'duplicate message id for channel' },
  scheduled_duplicate: { status: 409, text: 'duplicate scheduled message id for channel' },
  consumer_not_pull: { status: 412, text: 'consumer not pull based' },
  job_unknown: { status: 404, text: 'job could not be found' },
  job_of_another: { status: 401, text: 'job could not be found' },
  job_not_dead: { status: 400, text: 'job could not be found' },
  limit_invalid: { status: 400, text: 'invalid query parameter' },
  transition_invalid: { status: 400, text: 'invalid transition request' },
  timeout_misplaced: { status: 400, text: 'timeout provided with invalid state' },
  request_body_invalid: { status: 400, text: 'invalid request body' },
  requeue_token_wrong: { status: 400, text: '`requeue` form param must match consumer token' },
  not_exhausted: { status: 404, text: 'job is not dead or retry not exhausted' },
  both_cursors: {
    status: 400,
    text: 'can not decide on pagination direction! Both after and before provided or pagination is nil',
  },
  signature_missing: { status: 401, text: 'missing X-Broker-Signature header' },
  signature_malformed: { status: 401, text: 'malformed X-Broker-Signature header' },
  signature_untimely: { status: 403, text: 'request timestamp outside tolerance window' },
  signature_wrong: { status: 403, text: 'invalid signature' },
  internal: { status: 500, text: 'internal error' },
} as const satisfies Readonly<Record<string, { readonly status: number; readonly text: string }>>

export type RefusalName = keyof typeof REFUSALS

export class Refused extends Error {
  override readonly name = 'Refused'
  readonly refusal: RefusalName
  readonly status: number

  /** `text` replaces the table's where it depends on a setting. */
  constructor(refusal: RefusalName, text: string = REFUSALS[refusal].text) {
    super(text)
    this.refusal = refusal
    this.status = REFUSALS[refusal].status
  }
}
