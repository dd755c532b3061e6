/** All that a dispatcher does with one table, its statements made once. */
import type { Layout } from '../layout.ts'
import { claimsOf } from './claim.ts'
import { renewalsOf, suspicionsOf } from './hold.ts'
import { linesOf } from './line.ts'
import { purgesOf } from './purge.ts'
import { settlementsOf } from './settle.ts'
import { wakeSwitchOf } from './wake.ts'

export type MessageTable = ReturnType<typeof messageTable>

export const messageTable = (layout: Layout) => ({
  layout,
  claim: claimsOf(layout),
  suspectsWait: suspicionsOf(layout),
  renew: renewalsOf(layout),
  settle: settlementsOf(layout),
  lines: linesOf(layout),
  purge: purgesOf(layout),
  setWaiting: wakeSwitchOf(layout),
})
