/** What happens in a demo, on a clock that is moved. */
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../config/index.ts'
import { instant } from '../core/clock.ts'
import { TestClock } from '../core/test-clock.ts'
import { Office } from '../office.ts'
import { Chance } from './chance.ts'
import { demoConfig } from './config.ts'
import { startEngines } from './engine-roles.ts'
import { Partners } from './partners.ts'
import { makeQueues } from './plain-queues.ts'
import { Traffic } from './traffic.ts'
import { DEMO_SIGNATURES } from './troubles.ts'
import { World } from './world.ts'

/** Where no partner listens. */
const NOBODY = 'http://127.0.0.1:9'
const NOON = instant(1_798_804_800_000_000n)

let office: Office
let clock: TestClock
let world: World
let said: string[]
let ended: AbortController
let running: Promise<void>

beforeEach(async () => {
  clock = new TestClock()
  clock.freeze(NOON)
  const terms = { storeIsGiven: false, logLevelIsGiven: false }
  const { store, engines, outbox, webhooks } = demoConfig(loadConfig({ env: {} }), terms, NOBODY)
  office = await Office.open({
    store,
    clock,
    engines: { definitions: engines.definitions },
    outbox,
    webhooks,
  })
  world = new World()
  world.begin(NOON)
  said = []
  ended = new AbortController()
  running = Promise.resolve()
  await makeQueues(office)
})

afterEach(async () => {
  ended.abort()
  let isClosed = false
  const closed = running
    .then(() => office.close())
    .finally(() => {
      isClosed = true
    })
  // Handlers finish by the clock.
  while (!isClosed) await pass(1)
  await closed
})

function run(mostPending: number): void {
  const { signal } = ended
  const chance = new Chance(7)
  const say = (line: string): void => void said.push(line)
  const partners = new Partners(office)
  running = new Traffic({ office, world, partners, chance, say, signal, mostPending }).run()
}

/** Lets that many seconds pass, one after the other. */
async function pass(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    // An alarm rings when its moment is over.
    clock.advance(1_000_001n)
    for (let turns = 0; turns < 4; turns++) await turn()
  }
}

const stormLetters = async (): Promise<number> => {
  const { totals } = await office.letters.ledger.counts({ signature: DEMO_SIGNATURES.stormSignature })
  return totals.Pending
}

describe('a storm', () => {
  it('makes hundreds of letters of one error within a minute and a half, and ends', async () => {
    await startEngines(office, world, new Chance(7))
    run(5_000)
    await pass(15)
    expect(await stormLetters()).toBe(0)
    await pass(75)
    expect(await stormLetters()).toBeGreaterThan(200)
    await pass(15)
    expect(world.gatewayIsDown).toBe(false)
    expect(said).toEqual([expect.stringContaining('stopped answering'), expect.stringContaining('again')])
  })
})

describe('too many letters', () => {
  it('end what happens, and say so', async () => {
    run(-1)
    await pass(60)
    expect(said).toEqual([expect.stringContaining('nothing more is sent')])
    expect((await office.queues.depths()).map(({ ready }) => ready).filter((ready) => ready > 0)).toEqual([])
  })
})
