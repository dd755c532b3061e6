/** Where a redrive is shown while one watches: redrawn in place on a terminal, line by line anywhere else. */

import type { RedriveItem } from '../../client/redrive-types.ts'
import { styleOf } from '../style.ts'
import type { Screen, Terminal } from '../terminal.ts'
import { frameOf, lineOf } from './watch-frame.ts'

export interface Display {
  show(redrive: RedriveItem): void
  /** It cannot be looked at now, because of this. */
  trouble(reason: string): void
  /** Takes away what would stay on the screen. */
  end(): void
}

const SILENT: Display = { show: () => {}, trouble: () => {}, end: () => {} }

/** The display that this terminal has; `json` has none. `nowMs` tells how much time has passed. */
export function displayOn(
  terminal: Terminal,
  { json = false }: { readonly json?: boolean },
  nowMs: () => number = () => performance.now(),
): Display {
  if (json) return SILENT
  return terminal.screen === undefined ? lines(terminal, nowMs) : inPlace(terminal, terminal.screen)
}

/** Numbers that change are told this often; another state at once. */
const LINE_MS = 5_000

function lines({ err }: Terminal, nowMs: () => number): Display {
  let [said, saidState, saidTrouble] = ['', '', '']
  let saidAtMs = Number.NEGATIVE_INFINITY
  return {
    show(redrive) {
      saidTrouble = ''
      const line = lineOf(redrive)
      const isNew = line !== said && (redrive.state !== saidState || nowMs() - saidAtMs >= LINE_MS)
      if (!isNew) return
      ;[said, saidState, saidAtMs] = [line, redrive.state, nowMs()]
      err(line)
    },
    trouble(reason) {
      if (reason !== saidTrouble) err(`no answer, trying on: ${reason}`)
      saidTrouble = reason
    },
    end: () => {},
  }
}

/** The cursor goes up to the first line of the last picture; what follows it is erased. */
const over = (rows: number): string => `${rows === 0 ? '' : `\u001b[${rows}A`}\r\u001b[J`
// Without cursor, and with lines that end at the edge instead of going on below it: rows are counted.
const ENTER = '\u001b[?25l\u001b[?7l'
const LEAVE = '\u001b[?7h\u001b[?25h'

function inPlace(terminal: Terminal, screen: Screen): Display {
  let rows = 0
  let last: RedriveItem | null = null
  const draw = (picture: readonly string[]) => {
    const fitting = picture.slice(0, Math.max(1, screen.rows - 1))
    screen.draw(`${over(rows)}${fitting.map((line) => `${line}\r\n`).join('')}`)
    rows = fitting.length
  }
  const style = styleOf(terminal)
  screen.draw(ENTER)
  return {
    show(redrive) {
      last = redrive
      draw(frameOf(redrive, screen.columns, style))
    },
    trouble(reason) {
      const shown = last === null ? [] : frameOf(last, screen.columns, style)
      draw([...shown, style.red(`no answer, trying on: ${reason}`)])
    },
    end: () => screen.draw(`${over(rows)}${LEAVE}`),
  }
}
