/** What letters promise, and `verify` proves. */
import type { Invariant } from './audit/invariant.ts'
import { letterCounts } from './invariants/counts.ts'
import { oneLetter } from './invariants/one-letter.ts'
import { oneState } from './invariants/one-state.ts'
import { removals } from './invariants/removals.ts'

export const letterInvariants: readonly Invariant[] = [oneLetter, oneState, letterCounts, removals]
