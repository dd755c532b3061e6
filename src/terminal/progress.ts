/** Progress on stderr: a bar redrawn on a terminal, a line now and then elsewhere. */
import type { Terminal } from './terminal.ts'
import { grouped } from './words.ts'

const BAR_CELLS = 20
const REDRAW_MS = 100
const LINE_MS = 5_000

export interface Progress {
  /** `done` of about `expected` units. */
  show(label: string, done: number, expected: number, unit?: string): void
  /** Removes the bar. */
  end(): void
}

/** `nowMs` is replaced in tests. */
export function showProgress(
  { err, redraw }: Pick<Terminal, 'err' | 'redraw'>,
  nowMs: () => number = () => performance.now(),
): Progress {
  const everyMs = redraw === undefined ? LINE_MS : REDRAW_MS
  let shownAtMs = nowMs()
  return {
    show(label, done, expected, unit = 'rows') {
      if (nowMs() - shownAtMs < everyMs) return
      shownAtMs = nowMs()
      if (redraw === undefined)
        err(
          `${label}: ${percent(done, expected).trimStart()}, ${grouped(done)} of ${grouped(expected)} ${unit}`,
        )
      else
        redraw(
          `${bar(done, expected)} ${percent(done, expected)}  ${label}  ${grouped(done)} of ${grouped(expected)} ${unit}`,
        )
    },
    end() {
      redraw?.('')
    },
  }
}

const part = (done: number, expected: number): number =>
  expected <= 0 ? 1 : Math.min(1, Math.max(0, done / expected))

export function bar(done: number, expected: number): string {
  const full = Math.floor(part(done, expected) * BAR_CELLS)
  return '█'.repeat(full) + '░'.repeat(BAR_CELLS - full)
}

const percent = (done: number, expected: number): string =>
  `${Math.floor(part(done, expected) * 100)}%`.padStart(4)
