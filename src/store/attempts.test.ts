import { describe, expect, it } from 'vitest'
import { withAttempts } from './store-calls.ts'

const lost = new Error('lost the race')
const broken = new Error('broken')
const lostRace = (error: unknown) => error === lost

describe('a transaction that lost a race', () => {
  it('is tried again until it wins', async () => {
    let tries = 0
    const result = await withAttempts(async () => {
      if (++tries < 4) throw lost
      return 'won'
    }, lostRace)
    expect([result, tries]).toEqual(['won', 4])
  })

  it('is given up after a few attempts, with the last error', async () => {
    let tries = 0
    const attempt = async () => {
      tries++
      throw lost
    }
    await expect(withAttempts(attempt, lostRace)).rejects.toBe(lost)
    expect(tries).toBe(6)
  })

  it('is not tried again for any other reason', async () => {
    let tries = 0
    const attempt = async () => {
      tries++
      throw broken
    }
    await expect(withAttempts(attempt, lostRace)).rejects.toBe(broken)
    expect(tries).toBe(1)
  })
})
