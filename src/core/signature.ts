/**
 * Signatures: the fingerprint of an error without what differs from one occurrence to the next, so that letters with
 * the same cause form a group. Pure, and bounded in time and length whatever the error holds.
 *
 * A fingerprint is kept for ever. Whoever changes what an error's fingerprint is gives the algorithm a new version,
 * which is part of the fingerprint; the table of the test beside this file notices when that was forgotten.
 */
import { hash } from 'node:crypto'
import { cut, maskText } from './mask.ts'
import { topFrame } from './top-frame.ts'

/** The version of the algorithm. */
export const SIGNATURE_VERSION = 1

export interface Signature {
  /** The version of the algorithm and the hash of the normalised error: '1-9f86d081884c7d65'. */
  readonly fingerprint: string
  readonly errorClass: string
  /** The normalised error, for people: what all letters of the group have in common. At most 200 characters. */
  readonly title: string
}

export interface ErrorText {
  readonly errorClass: string
  readonly errorMessage: string
  readonly errorStack: string | null
}

const MAX_TITLE = 200
const MAX_CLASS = 200
/** How much of the normalised message counts, and how much is read to get it. */
const MAX_MESSAGE = 200
const MAX_MESSAGE_READ = 4_000
const MAX_FRAME = 120
const HASH_DIGITS = 16

/** Signatures by the error that they were worked out of: who prepares a death does so before its transaction. */
const known = new WeakMap<ErrorText, Signature>()

/** The group that an error belongs to. Of the same object it is worked out once. */
export function signatureOf(error: ErrorText): Signature {
  const signature = known.get(error) ?? workedOut(error)
  known.set(error, signature)
  return signature
}

function workedOut({ errorClass, errorMessage, errorStack }: ErrorText): Signature {
  const kind = plainText(errorClass, MAX_CLASS)
  const message = maskText(errorMessage, MAX_MESSAGE, MAX_MESSAGE_READ)
  const frame =
    errorStack === null ? '' : maskText(topFrame(errorStack, errorMessage), MAX_FRAME, 2 * MAX_FRAME)
  // None of the parts holds a line break, so that no two errors give the same three lines.
  const digest = hash('sha256', `${kind}\n${message.toLowerCase()}\n${frame.toLowerCase()}`, 'hex')
  return {
    fingerprint: `${SIGNATURE_VERSION}-${digest.slice(0, HASH_DIGITS)}`,
    errorClass: kind,
    title: titleOf(kind, message, frame),
  }
}

function titleOf(kind: string, message: string, frame: string): string {
  const place = frame === '' ? '' : `at ${frame}`
  const shown = cut(message, MAX_TITLE - place.length - 1)
  return [shown, place].filter((part) => part !== '').join(' ') || kind || 'no error message'
}

/** The start of a text, with its white space and control characters collapsed. */
function plainText(text: string, limit: number): string {
  return cut(text, limit)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .toWellFormed()
}
