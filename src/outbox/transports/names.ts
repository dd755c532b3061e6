/** The options of a transport, by name. */
import { refuse, refuseUnknown } from '../refusal.ts'

/** Refuses what is no list of options, and options that do not exist. */
export function checkNames(given: unknown, known: readonly string[]): void {
  if (typeof given !== 'object' || given === null) refuse('transport', 'it has no options')
  refuseUnknown(given, known)
}
