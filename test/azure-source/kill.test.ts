/** A server that is killed while it takes entities in or sends a letter back leaves nothing lost and nothing doubled. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { TransactionAction } from '@azure/data-tables'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { microseconds } from '../../src/core/clock.ts'
import type { AzureTables } from '../../src/outgoing/azure/keys.ts'
import { STEPS, stopBehind } from '../world/azure-gate.ts'
import { AzureWorld } from '../world/azure-world.ts'
import { describeAzurite } from '../world/azurite.ts'
import { isProof, sizeOf } from '../world/limits.ts'
import { stores } from '../world/stores.ts'

const program = fileURLToPath(new URL('server-child.ts', import.meta.url))
const ENTITIES = sizeOf(400, 10_000)
const KILLS = sizeOf(2, 10)

describeAzurite('a server that is killed', (azurite) => {
  describe.each(stores)('on $name', (kind) => {
    let world: AzureWorld
    beforeEach(async () => {
      world = await AzureWorld.open(azurite(), kind)
    })
    afterEach(async () => {
      try {
        expect(await world.violations()).toEqual([])
      } finally {
        await world.close()
      }
    })

    const begin = (mode: string, settings: AzureTables = world.settings, ...more: readonly string[]) =>
      spawn(process.execPath, [program, mode, world.storeUrl, JSON.stringify(settings), ...more], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })

    it(`while it takes in ${ENTITIES} entities, ${KILLS} times, has each once`, async () => {
      for (let from = 0; from < ENTITIES; from += 100) {
        const actions = Array.from(
          { length: 100 },
          (_, i): TransactionAction => [
            'create',
            {
              partitionKey: `engine-${from % 1_000}`,
              rowKey: `row-${from + i}`,
              ...world.columns({ CorrelationId: `c-${from + i}` }),
            },
          ],
        )
        await world.dlq.submitTransaction(actions)
      }
      for (let i = 0; i < KILLS; i++) {
        const child = begin('take')
        const ended = once(child, 'exit')
        await once(child.stdout, 'data')
        await pause(20 + Math.random() * sizeOf(150, 1_500))
        child.kill('SIGKILL')
        await ended
      }
      await world.server.round()
      expect(await world.total()).toBe(ENTITIES)
      await (await world.another()).round()
      expect(await world.total()).toBe(ENTITIES)
    })

    // The steps are held by tests without processes, too; all of them by the proof.
    it.each(STEPS.filter((step) => isProof || step === 'marked' || step === 'sent'))(
      'when a letter is %s, sends it once, or says that nobody knows',
      async (step) => {
        const key = await world.fail()
        await world.server.round()
        const letter = await world.only()
        const gate = await world.gate()
        gate.decide(stopBehind(step))
        const connectionStringFile = await world.connectionFile(gate)
        const child = begin('send', { ...world.settings, connectionStringFile }, String(letter.id))
        const ended = once(child, 'exit')
        await Promise.race([gate.held, ended.then(() => expect.fail('the server ended before it was held'))])
        child.kill('SIGKILL')
        await ended
        world.clock.thaw()
        world.clock.freeze(world.clock.now())
        world.clock.advance(microseconds(120))
        const next = await world.another()
        await next.round()
        const { uncertain } = await next.azure.state()
        const { status } = (await world.caseFile(letter)).letter
        const sent = (await world.messages()).length
        const isUnknown = step === 'intended' || step === 'sent'
        expect(uncertain).toBe(isUnknown ? 1 : 0)
        expect(sent).toBe(step === 'sent' || step === 'settled' ? 1 : 0)
        expect(status).toBe(step === 'settled' ? 'Resolved' : 'Pending')
        if (isUnknown) await next.azure.settleUncertain(letter.id, sent === 1, 'nell')
        if (sent === 0) await next.letters.retry(letter, { edit: null, notes: null, actor: 'nell' })
        await next.round()
        expect((await world.messages()).length).toBe(1)
        expect(await world.entity(key)).toMatchObject({
          Status: { value: 'Resolved' },
          ResolutionNotes: { value: 'Retried' },
        })
      },
    )
  })
})
