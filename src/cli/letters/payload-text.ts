/** Payloads for people: text as lines, JSON indented, anything else in hex. Nothing in it can command the terminal. */
import { diffArrays } from 'diff'
import { textOf } from '../../client/bytes.ts'
import { indentJson } from '../../core/json/tokens.ts'
import { printable, type Style } from '../../terminal/terminal.ts'
import { grouped } from '../../terminal/words.ts'

/** Longer texts are not indented: they are cut anyway. */
const MOST_INDENTED = 1_048_576
const MOST_LINES = 200
const MOST_LINE = 2_000
const DUMP_ROW = 16
const DUMP_ROWS = 32

interface PayloadText {
  /** `JSON`, `text`, `bytes` or `empty`. */
  readonly kind: string
  readonly lines: readonly string[]
  readonly isCut: boolean
}

export function payloadText(bytes: Uint8Array): PayloadText {
  if (bytes.length === 0) return { kind: 'empty', lines: [], isCut: false }
  const text = textOf(bytes)
  if (text === undefined) return { kind: 'bytes', ...hexDump(bytes) }
  const json = text.length <= MOST_INDENTED ? indentJson(text) : null
  const { lines, isCut } = firstLines(json ?? text)
  return { kind: json === null ? 'text' : 'JSON', lines, isCut }
}

/** All lines, JSON indented; null when it is no text. */
export function textLines(bytes: Uint8Array): readonly string[] | null {
  const text = textOf(bytes)
  return text === undefined ? null : (indentJson(text) ?? text).split('\n').map(printable)
}

/** `1,234 bytes, JSON`. */
export const sizeText = (bytes: Uint8Array, kind: string): string =>
  `${grouped(bytes.length)} ${bytes.length === 1 ? 'byte' : 'bytes'}${kind === 'bytes' || kind === 'empty' ? '' : `, ${kind}`}`

function firstLines(text: string): { lines: readonly string[]; isCut: boolean } {
  const lines = text.split('\n', MOST_LINES + 1)
  const kept = lines.slice(0, MOST_LINES)
  return {
    lines: kept.map((line) => printable(line.length > MOST_LINE ? `${line.slice(0, MOST_LINE)}…` : line)),
    isCut: lines.length > MOST_LINES || kept.some((line) => line.length > MOST_LINE),
  }
}

function hexDump(bytes: Uint8Array): { lines: readonly string[]; isCut: boolean } {
  const shown = bytes.subarray(0, DUMP_ROW * DUMP_ROWS)
  const lines: string[] = []
  for (let start = 0; start < shown.length; start += DUMP_ROW) {
    const row = shown.subarray(start, start + DUMP_ROW)
    const hex = Array.from(row, (byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const characters = Array.from(row, (byte) =>
      byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.',
    )
    lines.push(
      `${start.toString(16).padStart(8, '0')}  ${hex.padEnd(DUMP_ROW * 3 - 1)}  ${characters.join('')}`,
    )
  }
  return { lines, isCut: shown.length < bytes.length }
}

/** The lines that differ, with some around them. */
export function diffLines(before: Uint8Array, after: Uint8Array, style: Style): readonly string[] {
  const [beforeLines, afterLines] = [textLines(before), textLines(after)]
  if (beforeLines === null || afterLines === null) {
    return [`the payloads are bytes: ${before.length} before, ${after.length} after the edit`]
  }
  const diff = lineDiff(beforeLines, afterLines)
  if (diff.length > 0) return diff.map((line) => painted(line, style))
  return [
    before.length === after.length && Buffer.compare(before, after) === 0
      ? 'nothing differs'
      : 'only white space differs',
  ]
}

function painted({ sign, text }: DiffLine, style: Style): string {
  const line = `${sign} ${text}`.trimEnd()
  if (sign === '-') return style.red(line)
  return sign === '+' ? style.green(line) : style.dim(line)
}

interface DiffLine {
  readonly sign: ' ' | '-' | '+' | '…'
  readonly text: string
}

/** A comparison that takes longer is given up: all lines are then shown as replaced. */
const LONGEST_MS = 1_000
const CONTEXT = 3

/** `…` stands for equal lines. Empty when all are equal. */
export function lineDiff(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  const compared = diffArrays([...before], [...after], { timeout: LONGEST_MS }) ?? [
    { value: before, removed: true, added: false },
    { value: after, removed: false, added: true },
  ]
  const lines = compared.flatMap(({ value, added, removed }) =>
    value.map((text): DiffLine => ({ sign: added ? '+' : removed ? '-' : ' ', text })),
  )
  return lines.every(({ sign }) => sign === ' ') ? [] : withContext(lines)
}

function withContext(lines: readonly DiffLine[]): readonly DiffLine[] {
  const isNear = (index: number): boolean =>
    lines.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some(({ sign }) => sign !== ' ')
  const shown: DiffLine[] = []
  for (const [index, each] of lines.entries()) {
    if (isNear(index)) shown.push(each)
    else if (shown.at(-1)?.sign !== '…') shown.push({ sign: '…', text: '' })
  }
  return shown
}
