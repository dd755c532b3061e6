/** What happens in a demo, on a clock that is moved. */
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../config/index.ts'
import { instant } from '../core/clock.ts'
import { Office } from '../office.ts'
import { DEMO_SIGNATURES } from '../sources/engines/demo-roles.ts'
import { demoConfig, demoSources } from './config.ts'
import { openParts } from './serve-demo.ts'
import { GATEWAY } from './story/story.ts'
import { Traffic } from './traffic.ts'
import { CatchUpClock, World } from './world.ts'

const NOON = instant(1_798_804_800_000_000n)

let office: Office
let clock: CatchUpClock
let world: World
let said: string[]
let ended: AbortController
let running: Promise<void>

beforeEach(async () => {
  clock = new CatchUpClock(0n)
  clock.freeze(NOON)
  world = new World(clock)
  await world.listen()
  const sources = await demoSources()
  const terms = { storeIsGiven: false, logLevelIsGiven: false }
  const { store, engines, outbox, webhooks } = demoConfig(loadConfig({ env: {} }), terms, sources, world)
  // Deliveries end in nothing.
  await world.close()
  office = await Office.open({
    store,
    clock,
    engines: { definitions: engines.definitions },
    outbox,
    webhooks,
  })
  said = []
  ended = new AbortController()
  running = Promise.resolve()
  world.parts = await openParts(office, sources, world)
  world.chance.restart(7)
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
  const say = (line: string): void => void said.push(line)
  running = new Traffic({ letters: office.letters, world, say, signal, mostPending }).run()
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
  const { totals } = await office.letters.numbers.counts({ signature: DEMO_SIGNATURES.stormSignature })
  return totals.Pending
}

describe('a storm', () => {
  it('makes hundreds of letters of one error within a minute and a half, and ends', async () => {
    for (const part of world.parts) if (part.storm !== undefined) await part.start?.()
    run(5_000)
    await pass(15)
    expect(await stormLetters()).toBe(0)
    await pass(75)
    expect(await stormLetters()).toBeGreaterThan(200)
    await pass(15)
    expect(world.isOut(GATEWAY)).toBe(false)
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
