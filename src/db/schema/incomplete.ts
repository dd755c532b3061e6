/** What becomes of a store that lacks parts of its schema: refused where a promise is in danger, named where it is only slow. */
import { isDispensable, partName, type SchemaPart } from './parts.ts'

const REPAIR = 'stop all servers and run `bartleby migrate --repair`'

/** The store lacks something that a promise rests on. */
export class StoreIncomplete extends Error {
  override readonly name = 'StoreIncomplete'

  constructor(missing: readonly SchemaPart[]) {
    const lost = missing.filter(({ statement }) => statement === null)
    const remedy =
      lost.length === 0
        ? REPAIR
        : 'it cannot be made anew: restore the store from a backup (docs/operations.md)'
    super(`the store lacks ${listed(lost.length === 0 ? missing : lost)}; ${remedy}`)
  }
}

/** Throws where something is missing that a promise rests on. */
export function requireComplete(missing: readonly SchemaPart[]): void {
  const needed = missing.filter((part) => !isDispensable(part))
  if (needed.length > 0) throw new StoreIncomplete(needed)
}

/** A sentence about what is missing and not needed to keep promises. */
export const slowBecause = (missing: readonly SchemaPart[]): string =>
  `the store lacks ${listed(missing)}, and is slow without; ${REPAIR}`

const MOST = 10

function listed(parts: readonly SchemaPart[]): string {
  const names = parts.slice(0, MOST).map(partName)
  const others = parts.length - names.length
  return names.join(', ') + (others > 0 ? ` and ${others} more` : '')
}
