/**
 * What becomes of an item whose lease is over, or that nobody leased in time:
 *
 *            lease over ──► attempts used up? ──► dead (attempts)
 *                  │        expired?          ──► dead (expired)
 *                  └──────► otherwise         ──► back to the tail
 *            not leased ──► expired?          ──► dead (expired)
 *
 * The settings of the queue at this moment count. Dead letters are exempt: they always go back to the tail.
 */
import type { Instant } from '../core/clock.ts'
import type { DeathReason } from './queue.ts'
import type { ItemFacts } from './sql/inspect.ts'

/** Why the item dies now, or null when it lives on. */
export function deathReason(
  item: Pick<ItemFacts, 'attempts' | 'expireAt' | 'isLetter'>,
  maxAttempts: number,
  now: Instant,
): DeathReason | null {
  if (item.isLetter) return null
  if (maxAttempts !== 0 && item.attempts >= maxAttempts) return 'attempts'
  if (item.expireAt !== null && now > item.expireAt) return 'expired'
  return null
}
