/** Small things that the browser keeps for the reader. Where it keeps nothing (private windows, blocked storage), nothing breaks. */

/** For this browser, or for this tab only. */
export type Keeping = 'browser' | 'tab'

const storeOf = (keeping: Keeping): Storage => (keeping === 'browser' ? localStorage : sessionStorage)

/** null: nothing was kept, or it cannot be read. */
export function kept(keeping: Keeping, name: string): string | null {
  try {
    return storeOf(keeping).getItem(name)
  } catch {
    return null
  }
}

/** Keeps a text; null forgets it. */
export function keep(keeping: Keeping, name: string, text: string | null): void {
  try {
    if (text === null) storeOf(keeping).removeItem(name)
    else storeOf(keeping).setItem(name, text)
  } catch {
    // There is no room, or no storage: it holds until the page is left.
  }
}

/** Forgets all that was kept for this tab. */
export function forgetTab(): void {
  try {
    sessionStorage.clear()
  } catch {
    // Then nothing was kept.
  }
}
