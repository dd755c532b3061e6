import { hash } from 'node:crypto'
import type { TextEncoding } from '../api/shapes.ts'
import { viewOf } from '../api/view.ts'
import { showBytes } from '../core/content.ts'
import type { LetterSummary, Outgoing } from './letter.ts'
import type { CaseFile } from './letters.ts'
import {
  ATTEMPT,
  EVENT,
  LETTER,
  LETTER_DETAIL,
  type LetterDetail,
  type LetterItem,
  PREVIEW,
} from './shapes.ts'

const letterOnWire = viewOf(LETTER)
const detailOnWire = viewOf(LETTER_DETAIL)
const attemptOnWire = viewOf(ATTEMPT)
const eventOnWire = viewOf(EVENT)
const previewOnWire = viewOf(PREVIEW)

export const letterFields = (letter: LetterSummary): LetterItem =>
  letterOnWire({ ...letter, resolutionNotes: letter.notes })

export function letterDetail({
  letter,
  failures,
  history,
  restorableUntil,
  remarks,
}: CaseFile): LetterDetail {
  const original = showBytes(letter.payload)
  const edited = letter.editedPayload === null ? null : showBytes(letter.editedPayload)
  return detailOnWire({
    ...letter,
    resolutionNotes: letter.notes,
    restorableUntil,
    remarks,
    originalMessage: original.text,
    originalMessageEncoding: original.encoding,
    originalMessageSha256: sha256(letter.payload),
    editedMessage: edited?.text ?? null,
    editedMessageEncoding: edited?.encoding ?? null,
    ...showHeaders(letter.headers),
    leased: letter.position?.leased ?? false,
    leaseDeadline: letter.position?.leaseDeadline ?? null,
    attempts: failures.map(attemptOnWire),
    history: history.map(eventOnWire),
  })
}

export function outgoingFields(outgoing: Outgoing, edited: boolean) {
  const { text, encoding } = showBytes(outgoing.payload)
  const payloadSha256 = sha256(outgoing.payload)
  return previewOnWire({
    ...outgoing,
    ...{ dryRun: true, payload: text, payloadEncoding: encoding, payloadSha256, edited },
  })
}

const sha256 = (bytes: Uint8Array): string => hash('sha256', bytes, 'hex')

/** JSON headers as an object; others as text or base64, like payloads. */
function showHeaders(bytes: Uint8Array | null): {
  readonly headers: unknown
  readonly headersEncoding: TextEncoding | 'json' | null
} {
  if (bytes === null) return { headers: null, headersEncoding: null }
  const { text, encoding } = showBytes(bytes)
  try {
    return { headers: JSON.parse(text), headersEncoding: 'json' }
  } catch {
    return { headers: text, headersEncoding: encoding }
  }
}
