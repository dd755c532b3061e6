/** The receiver's own ceiling: the same requests, as many at the same time, and no table. */
import { Pool } from 'undici'
import { payload } from '../system.ts'
import { IN_FLIGHT } from './receive.ts'

/** What posts one message and resolves when it was received. */
export type Post = (body: Uint8Array, key: string) => Promise<void>

export function openPosts(url: string): { post: Post; close(): Promise<void> } {
  const { origin, pathname: path } = new URL(url)
  const pool = new Pool(origin, { connections: IN_FLIGHT, pipelining: 1 })
  return {
    async post(body, key) {
      const headers = {
        'content-type': 'application/json',
        'idempotency-key': key,
        'x-event-type': 'order.created',
        'x-tenant-id': 'tenant-1',
      }
      const answer = await pool.request({ path, method: 'POST', headers, body })
      await answer.body.dump()
      if (answer.statusCode !== 204) throw new Error(`the receiver answered ${answer.statusCode}`)
    },
    close: () => pool.close(),
  }
}

/** Gives each to `act`, as many at the same time as everybody may. */
export async function inFlight<T>(each: readonly T[], act: (one: T) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async () => {
    for (let at = next++; at < each.length; at = next++) {
      // `at` is an index of the list.
      await act(each[at] as T)
    }
  }
  await Promise.all(Array.from({ length: Math.min(IN_FLIGHT, each.length) }, lane))
}

/** Posts `count` messages that nobody keeps. */
export async function postAll(post: Post, count: number): Promise<void> {
  const bodies = Array.from({ length: count }, (_, n) => Buffer.from(JSON.stringify(payload(n))))
  let sent = 0
  await inFlight(bodies, (body) => post(body, `key-${sent++}`))
}
