/** A condition within a process: whoever changes it notifies those who wait. */
export class Signal {
  /** null: nobody waits. */
  #next: PromiseWithResolvers<void> | null = null

  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      this.#next ??= Promise.withResolvers<void>()
      await this.#next.promise
    }
  }

  /** Resolves after `ms` at the latest. */
  async within(ms: number, isSo: () => boolean): Promise<void> {
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      this.notify()
    }, ms)
    await this.until(() => isLate || isSo())
    clearTimeout(timer)
  }

  notify(): void {
    const next = this.#next
    this.#next = null
    next?.resolve()
  }
}
