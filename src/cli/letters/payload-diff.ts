/** How a payload differs from what it was, for people. */
import type { Style } from '../style.ts'
import { type DiffLine, lineDiff } from './line-diff.ts'
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
