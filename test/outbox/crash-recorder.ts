/**
 * A receiver that writes down when each delivery begins and ends. Dispatchers in other processes deliver to it over one
 * connection each; what was under way when a connection breaks has ended then.
 */
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import type { DispatcherOptions } from '../../src/sources/outbox/dispatcher/create-dispatcher.ts'
import type { Random } from '../world/random.ts'

/** What a dispatcher in another process is told. */
export interface DispatcherOrder {
  /** Where the recorder listens. */
  readonly port: number
  readonly options: Omit<DispatcherOptions, 'transport'>
}

/** A message with this payload ends the process that delivers it. */
export const DEADLY = 'deadly'

/** What a dispatcher says: a delivery begins, or it was broken off. */
export type Said =
  | {
      readonly begin: number
      readonly id: string
      readonly key: string
      readonly line: string | null
      readonly pid: number
    }
  | { readonly end: number }

interface Delivery {
  readonly id: string
  readonly pid: number
}

/** What is known of one message. */
export interface Receipt {
  readonly keys: Set<string>
  /** Deliveries that were received to their end. */
  received: number
}

export class Recorder {
  readonly receipts = new Map<string, Receipt>()
  /** What must never happen, as it happened. */
  readonly violations: string[] = []
  readonly #server: Server
  readonly #random: Random
  readonly #underway = new Map<string, Delivery>()
  /** The lines in which a delivery is under way. */
  readonly #busyLines = new Map<string, string>()
  /** The ids of every line in the order in which they were first received. */
  readonly #orders = new Map<string, string[]>()

  private constructor(server: Server, random: Random) {
    this.#server = server
    this.#random = random
    server.on('connection', (socket) => this.#serve(socket))
  }

  static async open(random: Random): Promise<Recorder> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new Recorder(server, random)
  }

  get port(): number {
    const address = this.#server.address()
    if (address === null || typeof address === 'string') throw new Error('the recorder has no port')
    return address.port
  }

  get received(): number {
    return [...this.receipts.values()].filter(({ received }) => received > 0).length
  }

  /** The ids of every line in the order in which they were first received. */
  get orders(): ReadonlyMap<string, readonly string[]> {
    return this.#orders
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    await closed
  }

  #serve(socket: Socket): void {
    const open = new Map<number, Delivery & { readonly line: string | null }>()
    const end = (number: number) => {
      const delivery = open.get(number)
      if (delivery === undefined) return undefined
      open.delete(number)
      if (this.#underway.get(delivery.id) === delivery) this.#underway.delete(delivery.id)
      if (delivery.line !== null && this.#busyLines.get(delivery.line) === delivery.id)
        this.#busyLines.delete(delivery.line)
      return delivery
    }
    // A broken connection is what this is for.
    socket.on('error', () => socket.destroy())
    socket.once('close', () => {
      for (const number of [...open.keys()]) end(number)
    })
    const lines = createInterface({ input: socket })
    lines.on('error', () => {})
    lines.on('line', (text) => {
      // Written by the program beside this one.
      const said = JSON.parse(text) as Said
      if ('end' in said) return void end(said.end)
      const { id, key, line, pid } = said
      const delivery = { id, pid, line }
      this.#begin(delivery, key)
      open.set(said.begin, delivery)
      setTimeout(
        () => {
          if (end(said.begin) === undefined) return
          this.#receive(id, line)
          socket.write(`${said.begin}\n`)
        },
        this.#random.whole(0, 4),
      )
    })
  }

  #begin(delivery: Delivery & { readonly line: string | null }, key: string): void {
    const { id, pid, line } = delivery
    const other = this.#underway.get(id)
    if (other !== undefined) this.violations.push(`${id} is delivered by ${pid} while ${other.pid} does`)
    this.#underway.set(id, delivery)
    const ahead = line === null ? undefined : this.#busyLines.get(line)
    if (ahead !== undefined) this.violations.push(`${id} is delivered while ${ahead} is, of the same line`)
    if (line !== null) this.#busyLines.set(line, id)
    const receipt = this.receipts.get(id) ?? { keys: new Set(), received: 0 }
    receipt.keys.add(key)
    this.receipts.set(id, receipt)
  }

  #receive(id: string, line: string | null): void {
    const receipt = this.receipts.get(id)
    if (receipt === undefined) return
    receipt.received += 1
    if (line === null || receipt.received > 1) return
    this.#orders.set(line, [...(this.#orders.get(line) ?? []), id])
  }
}
