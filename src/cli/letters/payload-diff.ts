/** How a payload differs from what it was, line by line. */
import type { Style } from '../style.ts'
import { textLines } from './payload-text.ts'

/** The lines that differ, with some around them, in their colours. */
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

/** More pairs than this are not compared: the part that differs is then shown as replaced as a whole. */
const MOST_PAIRS = 1_000_000
const CONTEXT = 3

/** The lines that differ, with some around them; `…` stands for lines that are equal. Empty when all are. */
export function lineDiff(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  let head = 0
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1
  let tail = 0
  const most = Math.min(before.length, after.length) - head
  while (tail < most && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1
  if (head + tail === before.length && head + tail === after.length) return []
  const changed = changes(before.slice(head, before.length - tail), after.slice(head, after.length - tail))
  const same = (lines: readonly string[]): DiffLine[] => lines.map((text) => ({ sign: ' ', text }))
  return withContext([
    ...same(before.slice(0, head)),
    ...changed,
    ...same(before.slice(before.length - tail)),
  ])
}

/** Through the longest sequence of lines that both have. */
function changes(before: readonly string[], after: readonly string[]): DiffLine[] {
  if (before.length * after.length > MOST_PAIRS) {
    return [...before.map((text) => line('-', text)), ...after.map((text) => line('+', text))]
  }
  const width = after.length + 1
  // At i, j: how many lines the rests from there have in common.
  const common = new Uint32Array((before.length + 1) * width)
  const at = (i: number, j: number): number => common[i * width + j] ?? 0
  for (let i = before.length - 1; i >= 0; i--) {
    for (let j = after.length - 1; j >= 0; j--) {
      common[i * width + j] =
        before[i] === after[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      lines.push(line(' ', before[i++] ?? ''))
      j += 1
    } else if (i < before.length && (j === after.length || at(i + 1, j) >= at(i, j + 1))) {
      lines.push(line('-', before[i++] ?? ''))
    } else {
      lines.push(line('+', after[j++] ?? ''))
    }
  }
  return lines
}

const line = (sign: DiffLine['sign'], text: string): DiffLine => ({ sign, text })

function withContext(lines: readonly DiffLine[]): readonly DiffLine[] {
  const isNear = (index: number): boolean =>
    lines.slice(Math.max(0, index - CONTEXT), index + CONTEXT + 1).some(({ sign }) => sign !== ' ')
  const shown: DiffLine[] = []
  for (const [index, each] of lines.entries()) {
    if (isNear(index)) shown.push(each)
    else if (shown.at(-1)?.sign !== '…') shown.push(line('…', ''))
  }
  return shown
}
