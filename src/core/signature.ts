/**
 * Signatures: fingerprints of errors without what differs between occurrences, so that letters with one cause form a group. Pure, bounded
 * in time and length. Fingerprints are kept for ever: a change of the algorithm needs a new version, which the test's table enforces.
 */
import { hash } from 'node:crypto'
import { cut, maskText } from './mask.ts'
import type { ErrorDescription } from './thrown.ts'

export const SIGNATURE_VERSION = 1

export interface Signature {
  /** Version and hash of the normalised error: '1-9f86d081884c7d65'. */
  readonly fingerprint: string
  readonly errorClass: string
  /** The normalised error, at most 200 characters. */
  readonly title: string
}

const MAX_TITLE = 200
const MAX_CLASS = 200
/** Characters that count, and characters read for them. */
const MAX_MESSAGE = 200
const MAX_MESSAGE_READ = 4_000
const MAX_FRAME = 120
const HASH_DIGITS = 16

/** Cached by object: whoever prepares a death does so before its transaction. */
const known = new WeakMap<ErrorDescription, Signature>()

export function signatureOf(error: ErrorDescription): Signature {
  const signature = known.get(error) ?? workedOut(error)
  known.set(error, signature)
  return signature
}

function workedOut({ errorClass, errorMessage, errorStack }: ErrorDescription): Signature {
  const kind = plainText(errorClass, MAX_CLASS)
  const message = maskText(errorMessage, MAX_MESSAGE, MAX_MESSAGE_READ)
  const frame =
    errorStack === null ? '' : maskText(topFrame(errorStack, errorMessage), MAX_FRAME, 2 * MAX_FRAME)
  // No part holds a line break, so three lines identify an error.
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

function plainText(text: string, limit: number): string {
  return cut(text, limit)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()
    .toWellFormed()
}

const MAX_STACK = 4_000
const MAX_LINES = 60
const MAX_LINE = 500

interface Frame {
  readonly call: string
  /** Without line numbers. */
  readonly file: string
}

const FOREIGN_FILE =
  /^node:|^internal\/|node_modules[/\\]|(?:site|dist)-packages[/\\]|[/\\]lib[/\\]python|\/go\/src\/|\/pkg\/mod\/|\/vendor\/|^<|<anonymous>/
const FOREIGN_CALL = /^(?:javax?|jdk|(?:com\.)?sun|kotlin|scala|runtime)\./

/**
 * `function (file)` of the topmost frame outside runtime and libraries; '' if there is none. Reads stacks of JavaScript, Java, Python and Go,
 * bounded; without line numbers, which change with every release.
 */
function topFrame(stack: string, message: string): string {
  const frame = stack.slice(0, MAX_LINE).trimStart().startsWith('Traceback ')
    ? pythonFrame(stack)
    : firstFrame(stack, message)
  if (frame === null) return ''
  const file = baseName(frame.file)
  return frame.call === '' ? `(${file})` : `${frame.call} (${file})`
}

/** Python's last frame is where it happened. */
function pythonFrame(stack: string): Frame | null {
  for (const line of lines(stack.slice(-MAX_STACK)).slice(-MAX_LINES).reverse()) {
    if (!line.startsWith('File "')) continue
    const quote = line.indexOf('"', 6)
    const call = line.lastIndexOf(', in ')
    if (quote < 0 || call < quote) continue
    const frame = { call: named(line.slice(call + 5)), file: line.slice(6, quote) }
    if (isOwn(frame)) return frame
  }
  return null
}

function firstFrame(stack: string, message: string): Frame | null {
  const start = endOfMessage(stack, message)
  const all = lines(stack.slice(start, start + MAX_STACK)).slice(0, MAX_LINES)
  for (const [index, line] of all.entries()) {
    if (line.startsWith('created by ')) return null
    const frame = line.startsWith('at ') ? atFrame(line.slice(3)) : goFrame(line, all[index + 1] ?? '')
    if (frame !== null && isOwn(frame)) return frame
  }
  return null
}

/** JavaScript's stacks repeat the message, which may be longer than what is read. */
function endOfMessage(stack: string, message: string): number {
  if (message.length < MAX_LINE) return 0
  const start = stack.slice(0, 2 * MAX_LINE).indexOf(message.slice(0, MAX_LINE))
  return start < 0 ? 0 : start + message.length
}

function lines(text: string): string[] {
  return text.split('\n').map((line) => line.slice(0, MAX_LINE).trim())
}

/** `call (file:1:2)` or `file:1:2` in JavaScript, `package.Class.method(File.java:1)` in Java. */
function atFrame(line: string): Frame | null {
  const open = line.endsWith(')') ? line.lastIndexOf('(') : -1
  const place = open < 0 ? line : line.slice(open + 1, -1)
  const file = withoutNumbers(place)
  // Without a line there is no file: 'native', '<anonymous>', 'index 0'.
  if (file === place) return null
  const call = open < 0 ? '' : line.slice(0, open).trim()
  return { call: file.includes('/') || file.includes('\\') ? scriptCall(call) : javaCall(call), file }
}

/** 'async Object.<anonymous>' is no name; 'new Order' is Order, 'Order.ship [as send]' is Order.ship. */
function scriptCall(call: string): string {
  const alias = call.indexOf(' [as ')
  const bare = (alias < 0 ? call : call.slice(0, alias)).replace('async ', '').replace('new ', '')
  return named(bare)
}

/** Class and method without package; the JDK's keep theirs, to be recognised. */
function javaCall(call: string): string {
  const bare = call.slice(call.lastIndexOf('/') + 1)
  return FOREIGN_CALL.test(bare) ? bare : bare.split('.').slice(-2).join('.')
}

/** A line with the call, followed by one with the file. */
function goFrame(line: string, next: string): Frame | null {
  const open = line.endsWith(')') ? line.lastIndexOf('(') : -1
  const offset = next.lastIndexOf(' +0x')
  const place = offset < 0 ? next : next.slice(0, offset)
  const file = withoutNumbers(place)
  if (open <= 0 || file === place || !file.endsWith('.go')) return null
  if (line.startsWith('panic(')) return null
  return { call: line.slice(line.lastIndexOf('/', open) + 1, open), file }
}

const named = (call: string): string => (call.includes('<') ? '' : call)

const isOwn = ({ call, file }: Frame): boolean =>
  file !== '' && !FOREIGN_FILE.test(file) && !FOREIGN_CALL.test(call)

/** 'a.ts:12:5' becomes 'a.ts'. */
function withoutNumbers(place: string): string {
  let end = place.length
  for (let numbers = 0; numbers < 2; numbers++) {
    let colon = end
    while (colon > 0 && isDigit(place.charCodeAt(colon - 1))) colon -= 1
    if (colon === end || place.charAt(colon - 1) !== ':') break
    end = colon - 1
  }
  return place.slice(0, end)
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57

function baseName(file: string): string {
  const query = file.indexOf('?')
  const path = query < 0 ? file : file.slice(0, query)
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1)
}
