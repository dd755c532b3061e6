/** What the parent asks of a child process, and what the child answers. */
import type { SystemName } from './systems/index.ts'

export const workloadNames = ['enqueue', 'single', 'drain', 'soak', 'latency', 'storm'] as const
export type WorkloadName = (typeof workloadNames)[number]

/** From here on minutes are compared, by the median of their seconds. */
const longSoakSeconds = 600

/** How much of a soak is compared at both of its ends. */
export const soakWindow = (soakSeconds: number): number =>
  soakSeconds >= longSoakSeconds ? 60 : Math.min(10, Math.floor(soakSeconds / 3))

export interface Sizes {
  /** Items of enqueue, drain and storm. */
  readonly items: number
  readonly singleSeconds: number
  readonly soakSeconds: number
  readonly latencySeconds: number
  /** Holds a transaction open in another session during the soak. */
  readonly idleTransaction: boolean
}

export interface Task {
  readonly system: SystemName
  readonly workload: WorkloadName
  readonly sizes: Sizes
  readonly postgresUrl: string
  readonly redisPort: number
  readonly folder: string
}

export interface Measurement {
  readonly items: number
  readonly seconds: number
  readonly perSecond: number
  /** Client and, over HTTP, server; not the database. */
  readonly cpuSecondsPer100k: number
  readonly peakRssMb: number
  /** Of the HTTP server alone, where there is one. */
  readonly serverPeakRssMb: number | null
  readonly walBytesPerItem: number | null
  readonly writeTransactionsPer1000: number | null
  readonly soak?: { readonly firstPerSecond: number; readonly lastPerSecond: number }
  readonly latency?: { readonly p50Ms: number; readonly p99Ms: number }
}
