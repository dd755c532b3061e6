/** What a pull consumer says it makes of a job: JSON whose keys are known whatever their case. */

export interface Transition {
  /** Whether there is such a state is for the jobs to say. */
  readonly nextState: string
  readonly extraSeconds: number
}

/** Some 68 years: beyond it, deadlines are no times any more. */
const MOST_SECONDS = 2 ** 31 - 1

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Reads a body; null when it is not one. Keys that are missing, or null, stand for nothing: no state, no seconds. */
export function readTransition(body: Uint8Array): Transition | null {
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(body))
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  let nextState: unknown = ''
  let extraSeconds: unknown = 0
  for (const [key, given] of Object.entries(value)) {
    const name = key.toLowerCase()
    if (name === 'nextstate') nextState = given ?? ''
    if (name === 'incrementaltimeout') extraSeconds = given ?? 0
  }
  if (typeof nextState !== 'string' || typeof extraSeconds !== 'number') return null
  const usable = Number.isInteger(extraSeconds) && extraSeconds >= 0 && extraSeconds <= MOST_SECONDS
  return usable ? { nextState, extraSeconds } : null
}
