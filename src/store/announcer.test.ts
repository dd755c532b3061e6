import { describe, expect, it } from 'vitest'
import { silentLog } from '../core/log.ts'
import { Announcer, WEBHOOK_JOBS, type Word } from './announcer.ts'

const ARRIVAL: Word = { about: 'q', number: 1, from: 7 }
const HELLO = /^[^~]+$/

/** A channel as PostgreSQL has them: everybody who listens hears everything, the sender too. */
class Channel {
  readonly said: string[] = []
  readonly #listeners: ((payload: string) => void)[] = []
  nowMs = 0

  store(isDeaf = false) {
    return {
      dialect: 'postgres' as const,
      notify: async (_channel: string, payload: string) => {
        this.said.push(payload)
        for (const hear of this.#listeners) hear(payload)
      },
      listen: async (_channel: string, hear: (payload: string) => void) => {
        if (!isDeaf) this.#listeners.push(hear)
      },
    }
  }

  async server(options: { isDeaf?: boolean } = {}) {
    const heard: Word[] = []
    const announcer = new Announcer(this.store(options.isDeaf), silentLog, () => this.nowMs)
    announcer.onWord((word) => heard.push(word))
    await announcer.start()
    return { announcer, heard }
  }

  announcements = () => this.said.filter((words) => !HELLO.test(words)).length
}

describe('word between servers', () => {
  it('reaches the others', async () => {
    const channel = new Channel()
    const first = await channel.server()
    const second = await channel.server()
    channel.nowMs = 10_000
    first.announcer.announce(ARRIVAL)
    expect(second.heard).toEqual([ARRIVAL])
    expect(first.heard).toEqual([])
  })

  it('names hundreds of webhook consumers in notifications that PostgreSQL takes, and what is left when it stops', async () => {
    const channel = new Channel()
    const first = await channel.server()
    const second = await channel.server()
    const words = Array.from({ length: 400 }, (_, i) => ({
      about: WEBHOOK_JOBS,
      number: 2_000_000_000 + i,
      from: 0,
    }))
    for (const word of words) first.announcer.announce(word, 60_000)
    expect(second.heard).toEqual(words.slice(0, 1))
    first.announcer.stop()
    expect(second.heard).toEqual(words)
    expect(Math.max(...channel.said.map((payload) => payload.length))).toBeLessThan(8_000)
  })

  it('is not sent by a server that is alone', async () => {
    const channel = new Channel()
    const { announcer } = await channel.server()
    channel.nowMs = 2_000
    announcer.announce(ARRIVAL)
    announcer.announce({ about: WEBHOOK_JOBS, number: 5, from: 0 })
    expect(channel.announcements()).toBe(0)
  })

  it('is sent while others may not have answered yet', async () => {
    const channel = new Channel()
    const { announcer } = await channel.server()
    announcer.announce(ARRIVAL)
    expect(channel.announcements()).toBe(1)
  })

  it('is sent again as soon as another server starts', async () => {
    const channel = new Channel()
    const first = await channel.server()
    channel.nowMs = 60_000
    const second = await channel.server()
    first.announcer.announce(ARRIVAL)
    expect(second.heard).toEqual([ARRIVAL])
    channel.nowMs = 62_000
    second.announcer.announce(ARRIVAL)
    expect(first.heard).toEqual([ARRIVAL])
  })

  it('is sent by a server that cannot hear, whoever is there', async () => {
    const channel = new Channel()
    const { announcer } = await channel.server({ isDeaf: true })
    channel.nowMs = 60_000
    announcer.announce(ARRIVAL)
    expect(channel.announcements()).toBe(1)
  })

  it('is sent by a server that went deaf just before another said that it is there', async () => {
    const channel = new Channel()
    const first = await channel.server()
    await channel.server()
    channel.nowMs = 5_000
    await channel.store().notify('', channel.said[0] ?? '')
    channel.nowMs = 15_500
    first.announcer.announce(ARRIVAL)
    expect(channel.announcements()).toBe(1)
  })

  it('is not sent for the sake of a server that was not heard for long', async () => {
    const channel = new Channel()
    const first = await channel.server()
    const second = await channel.server()
    second.announcer.stop()
    channel.nowMs = 14_000
    await channel.store().notify('', channel.said[0] ?? '')
    channel.nowMs = 16_000
    first.announcer.announce(ARRIVAL)
    expect(channel.announcements()).toBe(0)
  })
})
