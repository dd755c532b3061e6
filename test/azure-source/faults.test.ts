/** An account that is busy, away, forbidden or deaf loses nothing, doubles nothing, and is told of in words. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { microseconds } from '../../src/core/clock.ts'
import { BartlebyError } from '../../src/core/errors.ts'
import { checkAzure } from '../../src/sources/azure/check.ts'
import { type Gate, gateTo } from '../world/azure-gate.ts'
import { AzureWorld } from '../world/azure-world.ts'
import { describeAzurite } from '../world/azurite.ts'
import { stores } from '../world/stores.ts'

const RETRY = { edit: null, notes: null, actor: 'nell' }
const codeOf = (act: Promise<unknown>): Promise<string> =>
  act.then(
    () => 'done',
    (error: unknown) => (error instanceof BartlebyError ? error.code : String(error)),
  )
const BUSY = { status: 503, headers: { 'retry-after': '7' }, body: '{"odata.error":{"code":"ServerBusy"}}' }

describeAzurite('an account', (azurite) => {
  describe.each(stores)('with an office on $name', (kind) => {
    let world: AzureWorld
    let gate: Gate
    beforeEach(async () => {
      gate = await gateTo(azurite().ports)
      world = await AzureWorld.open(azurite(), kind, { connectionString: gate.connectionString })
    })
    afterEach(async () => {
      try {
        expect(await world.violations()).toEqual([])
      } finally {
        gate.decide(() => 'pass')
        await world.close()
        await gate.close()
      }
    })
    const rounds = () => Promise.all(world.server.azure.rounds.map((each) => each.now()))

    it('that asks for a pause gets one, for as long as it asks', async () => {
      await world.fail()
      gate.decide(() => BUSY)
      await rounds()
      expect(world.server.azure.troubles().join()).toContain('throttled')
      const before = gate.calls
      await rounds()
      world.clock.advance(microseconds(6))
      await rounds()
      expect(gate.calls).toBe(before)
      gate.decide(() => 'pass')
      world.clock.advance(microseconds(2))
      await world.server.round()
      expect((await world.list()).length).toBe(1)
      expect(world.server.azure.troubles()).toEqual([])
    })

    it('that is away for a minute is told of, and everything is made up for', async () => {
      const first = await world.fail()
      await world.server.round()
      const letter = await world.only()
      gate.decide(() => 'away')
      await world.fail()
      await rounds()
      expect(world.server.azure.troubles().join()).toContain(world.settings.dlqTableName)
      expect(await codeOf(world.letters.retry(letter, RETRY))).toBe('letter_azure_away')
      await world.letters.change(letter, { status: 'Resolved', notes: 'no use', actor: 'nell' })
      await rounds()
      expect(await world.server.azure.state()).toMatchObject({ unwritten: 1, uncertain: 0 })
      expect((await world.caseFile(letter)).remarks).toEqual([
        expect.stringMatching(/^Not yet written .* tried \d times, the last time: .+\.$/),
      ])
      gate.decide(() => 'pass')
      world.clock.advance(microseconds(60))
      await world.server.round()
      await world.server.round()
      expect((await world.list()).length).toBe(2)
      expect(await world.entity(first)).toMatchObject({
        Status: { value: 'Resolved' },
        ResolvedBy: { value: 'nell' },
      })
      expect(await world.server.azure.state()).toMatchObject({ unwritten: 0, troubles: [] })
    })

    it('whose queue took a message and whose answer was lost leaves the letter uncertain, and sends nothing twice', async () => {
      await world.fail()
      await world.server.round()
      const letter = await world.only()
      gate.decide(({ service, method }) => (service === 'queues' && method === 'POST' ? 'deaf' : 'pass'))
      expect(await codeOf(world.letters.retry(letter, RETRY))).toBe('letter_send_unknown')
      gate.decide(() => 'pass')
      expect(await codeOf(world.letters.retry(letter, RETRY))).toBe('letter_send_unknown')
      expect((await world.messages()).length).toBe(1)
      await world.server.azure.settleUncertain(letter.id, true, 'nell')
      await world.server.round()
      expect((await world.only()).status).toBe('Resolved')
    })

    it('whose queue refuses a message for certain leaves the letter as it was', async () => {
      const key = await world.fail()
      await world.server.round()
      const letter = await world.only()
      gate.decide(({ service }) =>
        service === 'queues' ? { status: 503, headers: { 'retry-after': '1' } } : 'pass',
      )
      expect(await codeOf(world.letters.retry(letter, RETRY))).toBe('letter_azure_away')
      gate.decide(() => 'pass')
      world.clock.advance(microseconds(5))
      await world.server.round()
      expect(await world.entity(key)).not.toHaveProperty('ResolvedBy')
      expect(await codeOf(world.letters.retry(letter, RETRY))).toBe('done')
      expect((await world.messages()).length).toBe(1)
    })

    it('that a credential has no right to any more is told of in words', async () => {
      await world.fail()
      gate.decide(() => ({ status: 403, body: '{"odata.error":{"code":"AuthorizationFailure"}}' }))
      await rounds()
      expect(world.server.azure.troubles().join()).toContain('AuthorizationFailure')
      const checks = await checkAzure(world.settings)
      expect(
        checks.filter(({ verdict }) => verdict === 'missing').map(({ message }) => message),
      ).toContainEqual(expect.stringContaining('this identity may not: its letters can be read'))
      gate.decide(() => 'pass')
      await world.server.round()
      expect((await world.list()).length).toBe(1)
      expect((await checkAzure(world.settings)).filter(({ verdict }) => verdict !== 'fine')).toEqual([])
    })

    it('may give an empty page with a token, and is read on', async () => {
      await world.fail()
      const headers = { 'x-ms-continuation-nextpartitionkey': 'a', 'x-ms-continuation-nextrowkey': 'a' }
      gate.decide(({ method, path, service }) =>
        service === 'tables' && method === 'GET' && !/NextPartitionKey/i.test(path)
          ? { status: 200, headers: { 'content-type': 'application/json', ...headers }, body: '{"value":[]}' }
          : 'pass',
      )
      await world.server.round()
      expect((await world.list()).length).toBe(1)
    })

    it('whose tables are not there yet is read once they are', async () => {
      await world.dlq.deleteTable()
      await world.server.round()
      expect(world.server.azure.troubles().join()).toContain('does not exist in the account')
      await world.dlq.createTable()
      await world.fail()
      await world.server.round()
      expect((await world.list()).length).toBe(1)
    })
  })
})
