/** The state of the invented world: who is out of order, and which invoices found their period locked once already. */
import type { Instant } from '../core/clock.ts'
import { invoiceNumber } from './payloads.ts'

export class World {
  /** Payments time out. */
  gatewayIsDown = false
  /** The ERP behind the outbox answers 503. */
  erpIsDown = false
  /** The warehouse's endpoint answers 503. */
  warehouseIsDown = false
  /** Nobody takes labels from their queue. */
  printerIsOut = false
  readonly #died = new Set<number>()
  #liveFrom = 0

  /** Invoices from before now died before, if at all: in the past that was filed, or under an earlier run of the demo. */
  begin(now: Instant): void {
    this.#liveFrom = invoiceNumber(now)
  }

  /** Whether the period of this invoice is locked for it. */
  isLocked(invoice: string): boolean {
    const number = numberOf(invoice)
    return number >= this.#liveFrom && !this.#died.has(number)
  }

  /** The invoice became a letter: when it is sent back, its period is open. */
  died(invoice: string): void {
    this.#died.add(numberOf(invoice))
  }

  /** It was posted after all. */
  posted(invoice: string): void {
    this.#died.delete(numberOf(invoice))
  }
}

const numberOf = (invoice: string): number => Number(invoice.slice('INV-'.length))
