/** Measures what a stretch of work cost: time, CPU, WAL bytes, write transactions, memory. */
import { readFileSync } from 'node:fs'
import pg from 'pg'
import type { Measurement } from './task.ts'

interface Reading {
  readonly atMs: number
  readonly cpuSeconds: number
  readonly walBytes: number
  readonly transactions: number
}

const clockTicksPerSecond = 100

export class Meter {
  readonly #postgres: pg.Client | null
  readonly #processIds: readonly number[]
  #start: Reading | null = null

  private constructor(postgres: pg.Client | null, processIds: readonly number[]) {
    this.#postgres = postgres
    this.#processIds = processIds
  }

  /** `postgresUrl` is null for systems that do not store there. */
  static async connect(postgresUrl: string | null, processIds: readonly number[]): Promise<Meter> {
    if (postgresUrl === null) return new Meter(null, processIds)
    const client = new pg.Client({ connectionString: postgresUrl })
    await client.connect()
    return new Meter(client, processIds)
  }

  /** Gives the planner its statistics: autovacuum has had no time for it since the preload. */
  async calm(): Promise<void> {
    await this.#postgres?.query('ANALYZE')
  }

  async start(): Promise<void> {
    this.#start = await this.#read()
  }

  /** Moves the start of the clock, not of the other readings, to the moment when work could begin. */
  restartClock(): void {
    if (this.#start !== null) this.#start = { ...this.#start, atMs: performance.now() }
  }

  /** Call as soon as the work is done: the time is read first. */
  async finish(items: number): Promise<Measurement> {
    const atMs = performance.now()
    const end = await this.#read()
    const start = this.#start
    if (start === null) throw new Error('finish() before start()')
    const seconds = (atMs - start.atMs) / 1000
    return {
      items,
      seconds,
      perSecond: items / seconds,
      cpuSecondsPer100k: ((end.cpuSeconds - start.cpuSeconds) / items) * 100_000,
      peakRssMb: process.resourceUsage().maxRSS / 1024,
      serverPeakRssMb: this.#processIds.length === 0 ? null : sum(this.#processIds.map(peakRssMb)),
      walBytesPerItem: this.#postgres === null ? null : (end.walBytes - start.walBytes) / items,
      writeTransactionsPer1000:
        this.#postgres === null ? null : ((end.transactions - start.transactions) / items) * 1000,
    }
  }

  async close(): Promise<void> {
    await this.#postgres?.end()
  }

  async #read(): Promise<Reading> {
    const { user, system } = process.cpuUsage()
    const cpuSeconds = (user + system) / 1e6 + sum(this.#processIds.map(cpuSecondsOf))
    let walBytes = 0
    let transactions = 0
    if (this.#postgres !== null) {
      // The distance between two snapshots' xmax is the number of transactions that wrote.
      const { rows } = await this.#postgres.query<{ wal: string; xid: string }>(
        `SELECT pg_current_wal_insert_lsn() - '0/0' AS wal, pg_snapshot_xmax(pg_current_snapshot())::text AS xid`,
      )
      walBytes = Number(rows[0]?.wal)
      transactions = Number(rows[0]?.xid)
    }
    return { atMs: performance.now(), cpuSeconds, walBytes, transactions }
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

/** Linux only; elsewhere a server's memory and CPU are not reported. */
function procFile(processId: number, file: string): string {
  try {
    return readFileSync(`/proc/${processId}/${file}`, 'utf8')
  } catch {
    return ''
  }
}

/** The most that a process has taken so far. */
export function peakRssMb(processId: number): number {
  return Number(/VmHWM:\s+(\d+) kB/.exec(procFile(processId, 'status'))?.[1] ?? 0) / 1024
}

/** User and system time that a process has taken so far. */
export function cpuSecondsOf(processId: number): number {
  const fields = procFile(processId, 'stat').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / clockTicksPerSecond
}
