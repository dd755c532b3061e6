import { describe, expect, it } from 'vitest'
import { redriveNumber } from '../redrive.ts'
import type { CountedLane } from '../rows/lanes.ts'
import { LaneTurns } from './drive.ts'

const lane = (number: number, planned: number): CountedLane => ({
  redrive: redriveNumber(1),
  lane: number,
  source: 'queues',
  engine: 'queues',
  destination: 'orders',
  planned,
  sent: 0,
  skipped: 0,
  failed: 0,
})

const NOTHING = { sent: 0, skipped: 0, failed: 0 }

function turnsOf(...lanes: readonly CountedLane[]) {
  const turns = new LaneTurns()
  turns.learn(lanes)
  const open = () => turns.open().map((each) => each.lane)
  return { turns, open }
}

describe('the lanes of a redrive', () => {
  it('get their turn one after the other', () => {
    const { turns, open } = turnsOf(lane(0, 5), lane(1, 5), lane(2, 5))
    expect(open()).toEqual([0, 1, 2])
    turns.took(lane(0, 5))
    expect(open()).toEqual([1, 2, 0])
    turns.took(lane(2, 5))
    expect(open()).toEqual([0, 1, 2])
  })

  it('are open as long as they have letters', () => {
    const { turns, open } = turnsOf(lane(0, 5), lane(1, 2))
    turns.count(lane(1, 2), { sent: 1, skipped: 1, failed: 0 })
    expect(open()).toEqual([0])
    expect(turns.areDone).toBe(false)
    turns.count(lane(0, 5), { sent: 3, skipped: 1, failed: 1 })
    expect([turns.areDone, turns.sent]).toEqual([true, 4])
  })

  it('wait for the others when nothing can be done in them', () => {
    const { turns, open } = turnsOf(lane(0, 5), lane(1, 5))
    turns.count(lane(0, 5), NOTHING)
    expect(open()).toEqual([1])
    turns.count(lane(1, 5), { sent: 1, skipped: 0, failed: 0 })
    expect(open()).toEqual([0, 1])
  })

  it('go on when others went on while they looked: what they waited for may have been done meanwhile', () => {
    const { turns, open } = turnsOf(lane(0, 5), lane(1, 5))
    turns.took(lane(0, 5))
    turns.took(lane(1, 5))
    turns.count(lane(0, 5), { sent: 1, skipped: 0, failed: 0 })
    turns.count(lane(1, 5), NOTHING)
    turns.took(lane(0, 5))
    turns.count(lane(0, 5), NOTHING)
    expect(open()).toEqual([1])
  })

  it('are what the store says, whatever was thought of them', () => {
    const { turns, open } = turnsOf(lane(0, 5), lane(1, 5))
    turns.count(lane(0, 5), NOTHING)
    turns.learn([
      { ...lane(0, 5), sent: 4 },
      { ...lane(1, 5), sent: 5 },
    ])
    expect(open()).toEqual([0])
    expect(turns.sent).toBe(9)
  })
})
