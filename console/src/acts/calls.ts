/** The calls that change letters, and the one that shows what a retry would send. */
import { call, pathTo } from '../api/call.ts'
import type { LetterItem, LetterKey, LetterStatus, RetryPreview, RetryReceipt } from '../api/types.ts'

/** What is sent instead of the original. */
export interface Edit {
  readonly payload: string
  readonly payloadEncoding: 'utf8' | 'base64'
}

export interface RetryRequest {
  readonly edit?: Edit | undefined
  readonly notes?: string
}

const retryPath = ({ engine, rowKey }: LetterKey): string => `${pathTo('/api/dlq', engine, rowKey)}/retry`

/** The body of a retry, whose size the server limits. */
export const retryBody = ({ edit, notes = '' }: RetryRequest): object => ({
  ...edit,
  ...(notes.trim() === '' ? {} : { notes }),
})

/** Sends a letter back. */
export const retryLetter = (
  letter: LetterKey,
  request: RetryRequest,
  onceKey: string,
): Promise<RetryReceipt> => call('POST', retryPath(letter), { body: retryBody(request), onceKey })

/** What a retry would send now; writes nothing. */
export const previewRetry = (letter: LetterKey, edit?: Edit, signal?: AbortSignal): Promise<RetryPreview> =>
  call('POST', retryPath(letter), {
    query: { dryRun: true },
    body: { ...edit },
    ...(signal === undefined ? {} : { signal }),
  })

/** Discards (`Resolved`), gives up (`Expired`) or restores (`Pending`) a letter. */
export const changeLetter = (
  { engine, rowKey }: LetterKey,
  status: LetterStatus,
  notes: string | null,
  onceKey: string,
): Promise<LetterItem> =>
  call('PATCH', pathTo('/api/dlq', engine, rowKey), {
    body: { status, ...(notes === null || notes.trim() === '' ? {} : { resolutionNotes: notes }) },
    onceKey,
  })
