/**
 * The three moments at which a crash costs most: behind the acceptance of a message, behind the claim of a job, and between a callback and
 * the commit of what came of it. And a server that is not dead, but so slow that another one took over.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { JOB } from '../../src/sources/webhooks/webhook.ts'
import { PATIENCE_MS } from '../world/limits.ts'
import { holdRows } from '../world/store-world.ts'
import { stores } from '../world/stores.ts'
import { Scene } from './crash-scene.ts'

describe.concurrent.each(stores)('a server on $name', (kind) => {
  it('that is killed leaves nothing undone', async () => {
    const scene = await Scene.set(kind)
    try {
      const first = await scene.spawn('first')
      const client = scene.client(first)
      await scene.register(client)
      await scene.broadcast(client, 'left', 'answered')
      await scene.called('answered')
      await scene.broadcast(client, 'right', 'claimed')
      await scene.called('claimed')
      await scene.broadcast(client, 'left', 'accepted')
      expect(await scene.jobs()).toEqual({
        accepted: [JOB.ready, 0],
        answered: [JOB.inFlight, 0],
        claimed: [JOB.inFlight, 0],
      })
      const hold = await holdRows(scene.place.url, 'webhook_jobs')
      scene.answer('answered')
      // Whether it has read the answer or not: it cannot write it down.
      await pause(100)
      await first.kill9()
      await hold.release()
      scene.answerAll()
      await scene.start('second')
      await scene.until({
        accepted: [JOB.delivered, 0],
        answered: [JOB.delivered, 1],
        claimed: [JOB.delivered, 1],
      })
      expect(scene.callsOf('accepted')).toEqual(['second'])
      expect(scene.callsOf('answered')).toEqual(['first', 'second'])
      expect(scene.callsOf('claimed')).toEqual(['first', 'second'])
      await scene.expectVerified()
    } finally {
      await scene.close()
    }
  })

  it('that another one took over from has nothing more to say', async () => {
    const scene = await Scene.set(kind)
    try {
      // The time of the first stands still as if it did not run at all; that of the second passes.
      const first = await scene.start('first')
      const client = scene.client(first)
      await scene.register(client)
      await scene.broadcast(client, 'left', 'm')
      await scene.called('m')
      await scene.start('second')
      await scene.called('m', 2)
      expect(await scene.jobs()).toEqual({ m: [JOB.inFlight, 1] })
      scene.answer('m', 204, 1)
      await vi.waitFor(() => expect(first.office.webhooks.courier.held).toBe(0), {
        timeout: PATIENCE_MS,
      })
      expect(await scene.jobs()).toEqual({ m: [JOB.inFlight, 1] })
      scene.answer('m', 500, 2)
      await scene.called('m', 3)
      scene.answer('m', 204, 3)
      await scene.until({ m: [JOB.delivered, 2] })
      expect(scene.callsOf('m')).toEqual(['first', 'second', 'second'])
      await scene.expectVerified()
    } finally {
      await scene.close()
    }
  })
})
