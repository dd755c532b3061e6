/**
 * SIGINT and SIGTERM: the first asks for a stop in good order, a second one ends the process at once, because
 * an operator who asks twice means it. So does a stop that takes too long.
 */
import type { EventEmitter } from 'node:events'

/** After the first signal everything must have ended within this time. */
const STOP_LIMIT_MS = 9_500

/**
 * What follows this closely is the same request: Ctrl-C reaches npm, its shell and the server alike, and npm
 * passes its own signal on to the server as well.
 */
export const SAME_REQUEST_MS = 500

/** What a shell shows for a program that died of the signal. */
const SIGNAL_EXIT = { SIGINT: 130, SIGTERM: 143 } as const

type StopSignal = keyof typeof SIGNAL_EXIT

const SIGNALS: readonly StopSignal[] = ['SIGINT', 'SIGTERM']

const STOP_TOO_SLOW_EXIT = 1

type Signals = Pick<EventEmitter, 'on' | 'off'>

/** Calls `first` at the first signal; another one that is no copy of it ends the process. Gives what ends the listening. */
export function onStopSignal(
  first: () => void,
  signals: Signals = process,
  exit: (code: number) => void = process.exit,
): () => void {
  let firstAtMs: number | undefined
  const listen = (signal: StopSignal) => {
    const nowMs = performance.now()
    if (firstAtMs === undefined) {
      firstAtMs = nowMs
      first()
    } else if (nowMs - firstAtMs > SAME_REQUEST_MS) {
      exit(SIGNAL_EXIT[signal])
    }
  }
  for (const signal of SIGNALS) signals.on(signal, listen)
  return () => {
    for (const signal of SIGNALS) signals.off(signal, listen)
  }
}

/**
 * Resolves at the first signal. Listening begins at once, so that a signal while the server still starts is
 * not lost, and never ends: a copy of the signal may arrive while the process is about to end.
 */
export function listenForStop(
  signals: Signals = process,
  exit: (code: number) => void = process.exit,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = () => {
    setTimeout(() => exit(STOP_TOO_SLOW_EXIT), STOP_LIMIT_MS).unref()
    resolve()
  }
  onStopSignal(stop, signals, exit)
  return promise
}
