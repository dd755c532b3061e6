/** The calls that make a plan, start it, and steer what was started. */
import { call, pathTo } from '../api/call.ts'
import { randomId } from '../api/random-id.ts'
import type { RedriveDetail } from '../api/redrive-types.ts'

const post = (path: string, body?: object): Promise<RedriveDetail> =>
  call('POST', path, { keepsDigits: true, ...(body === undefined ? {} : { body }) })

const ofRedrive = (id: string, act: string): string => `${pathTo('/api/redrives', id)}/${act}`

const because = (reason: string): object | undefined => (reason.trim() === '' ? undefined : { reason })

const LOOK_MS = 1_000

/** Makes a plan; nothing is changed by it. One that takes longer than a request goes on, and `tell` hears how far it is. */
export async function planRedrive(
  bodyText: string,
  tell: (sentence: string) => void,
): Promise<RedriveDetail> {
  let plan = await call<RedriveDetail>('POST', '/api/redrives', {
    bodyText,
    onceKey: randomId(),
    keepsDigits: true,
  })
  while (plan.state === 'planning') {
    tell(plan.sentence)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    plan = await call('GET', pathTo('/api/redrives', plan.id), { keepsDigits: true })
  }
  if (plan.state === 'stopped' || plan.state === 'cancelled') throw new Error(plan.sentence)
  return plan
}

export const startRedrive = (id: string): Promise<RedriveDetail> => post(ofRedrive(id, 'start'))

export const pauseRedrive = (id: string): Promise<RedriveDetail> => post(ofRedrive(id, 'pause'))

export const resumeRedrive = (id: string): Promise<RedriveDetail> => post(ofRedrive(id, 'resume'))

/** Ends it; also a plan that was not started. */
export const cancelRedrive = (id: string, reason: string): Promise<RedriveDetail> =>
  post(ofRedrive(id, 'cancel'), because(reason))

/** Letters a second, to each destination; null: as fast as it goes. */
export const setRedriveRate = (id: string, rate: number | null): Promise<RedriveDetail> =>
  post(ofRedrive(id, 'rate'), { rate })
