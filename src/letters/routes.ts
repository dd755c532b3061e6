/** HTTP calls of letters: `/api/dlq`, `/api/counts`, `/api/signatures`, `/api/activity` and `/api/overview`. */
import type { ApiCall } from '../api/calls.ts'
import type { Clock } from '../core/clock.ts'
import type { Letters } from './letters.ts'
import { dlqCalls } from './routes/dlq.ts'
import { type AskSources, numberCalls } from './routes/numbers.ts'

/** Without `sourceHealth`, the overview shows all sources as well. */
export const letterCalls = (
  letters: Letters,
  clock: Clock,
  sourceHealth?: AskSources,
): readonly ApiCall[] => [...dlqCalls(letters, clock), ...numberCalls(letters.numbers, sourceHealth)]
