/** The lines of the table: every figure beside what it is measured against, with its goal. */
import { median, type Times } from '../figures.ts'
import { count, judged, type Line, megabytes, percent, perSecond } from '../tables.ts'
import type { Rate } from './task.ts'

const INTAKE_SHARE = 0.5
const PREVIEW_MS = 20
const PREVIEW_AT = 1_000_000
const PROCESS_MS = 50
const MEMORY_MB = 256

const timesText = ({ p50Ms, p99Ms, worstMs }: Times): string =>
  `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, worst ${worstMs.toFixed(1)} ms`

export function intakeLines(store: string, rates: readonly Rate[], bare: readonly Rate[]): Line[] {
  const rate = median(rates.map((each) => each.perSecond))
  const floor = median(bare.map((each) => each.perSecond))
  const share = rate / floor
  const memory = Math.max(...rates.map((each) => each.peakRssMb))
  const bareMemory = Math.max(...bare.map((each) => each.peakRssMb))
  return [
    [
      `${store}: intake`,
      perSecond(rate),
      `bare loop ${perSecond(floor)}`,
      percent(share),
      judged('≥ 50%', share >= INTAKE_SHARE),
    ],
    [
      `${store}: memory of intake, at most`,
      megabytes(memory),
      `bare loop ${megabytes(bareMemory)}`,
      '',
      judged('≤ 256 MB', memory <= MEMORY_MB),
    ],
  ]
}

export const previewLine = (store: string, letters: number, times: Times): Line => [
  `${store}: preview of 100, of ${count(letters)} letters`,
  timesText(times),
  '',
  '',
  letters >= PREVIEW_AT ? judged('p99 ≤ 20 ms', times.p99Ms <= PREVIEW_MS) : '',
]

export const processLine = (store: string, times: Times): Line => [
  `${store}: process one event (POST)`,
  timesText(times),
  '',
  '',
  judged('p99 ≤ 50 ms', times.p99Ms <= PROCESS_MS),
]
