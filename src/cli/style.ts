/** Colours, on terminals only and never with NO_COLOR: what is piped or kept stays plain text. */
import type { Terminal } from './terminal.ts'

/** Makes a text look as its name says; where there are no colours, leaves it as it is. */
export interface Style {
  readonly bold: (text: string) => string
  readonly dim: (text: string) => string
  readonly red: (text: string) => string
  readonly green: (text: string) => string
  readonly yellow: (text: string) => string
  readonly cyan: (text: string) => string
}

const wrapped =
  (start: number, end: number) =>
  (text: string): string =>
    text === '' ? '' : `\u001b[${start}m${text}\u001b[${end}m`

const COLOURED: Style = {
  bold: wrapped(1, 22),
  dim: wrapped(2, 22),
  red: wrapped(31, 39),
  green: wrapped(32, 39),
  yellow: wrapped(33, 39),
  cyan: wrapped(36, 39),
}

const asIs = (text: string): string => text

export const PLAIN: Style = { bold: asIs, dim: asIs, red: asIs, green: asIs, yellow: asIs, cyan: asIs }

/** The style that stdout of this terminal can show. An empty NO_COLOR says nothing, as its convention has it. */
export const styleOf = ({ screen, env }: Pick<Terminal, 'screen' | 'env'>): Style =>
  screen !== undefined && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb' ? COLOURED : PLAIN

/** A status in its colour. */
export function statusIn(style: Style, status: string, text = status): string {
  if (status === 'Pending' || status === 'Failed') return style.yellow(text)
  return status === 'Expired' ? style.dim(text) : style.green(text)
}

/** The state of a run or of a redrive in its colour. */
export function stateIn(style: Style, state: string, text = state): string {
  if (state === 'done') return style.green(text)
  if (state === 'failed' || state === 'stopped' || state === 'cancelled') return style.red(text)
  return state === 'paused' ? style.yellow(text) : style.cyan(text)
}
