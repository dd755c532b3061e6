import { describe, expect, it } from 'vitest'
import { redriveAt } from '../../../test/world/redrive.ts'
import { redriveFields } from '../../redrive/view.ts'
import { widthOf } from '../../terminal/table.ts'
import { PLAIN } from '../../terminal/terminal.ts'
import { accountOf, frameOf, lineOf } from './watch-frame.ts'

const at = (changes: Parameters<typeof redriveAt>[0]) => {
  const redrive = redriveAt(changes)
  return redriveFields(redrive, redrive.plannedAt)
}

const RUNNING = at({
  state: 'running',
  counts: { sent: 300, confirmed: 280, returned: 4, skipped: 3, failed: 1 },
  terms: { rate: 50 },
  rateNow: 48.31,
  secondsLeft: 19,
  resumed: 2,
})

describe('a redrive under way', () => {
  it('is a picture in which numbers add up', () => {
    const [sentence, bar = '', ...lines] = frameOf(RUNNING, 80, PLAIN)
    expect(sentence).toBe('Sending 1,204 letters back: 300 sent, 3 skipped, 1 failed, 900 to go.')
    expect(bar).toMatch(/^running {4}█+▓+▚+▒+░+ {2}25%$/)
    expect(widthOf(bar)).toBeLessThanOrEqual(80)
    expect(lines).toEqual([
      '1,204 planned = 300 sent back + 3 skipped + 1 failed + 900 remaining',
      '  300 sent back = 280 confirmed + 4 returned + 16 unconfirmed',
      '48.3 letters a second, at most 50 a second to each destination, 19s left',
      'went on after a restart, twice',
    ])
  })

  it('says what the first letters are waited for', () => {
    const canary = { letters: 10, confirmPercent: 80, waitSeconds: 600 }
    const lines = frameOf(at({ state: 'canary', terms: { canary } }), 80, PLAIN)
    expect(lines.at(-1)).toBe('canary: goes on when 80% of 10 letters are confirmed, pauses after 10m')
  })

  it('fits a narrow terminal', () => {
    const [first = '', second = '', third = '', bar = ''] = frameOf(RUNNING, 30, PLAIN)
    expect([first, second, third]).toEqual([
      'Sending 1,204 letters back:',
      '300 sent, 3 skipped, 1 failed,',
      '900 to go.',
    ])
    expect(widthOf(bar)).toBeLessThanOrEqual(30)
  })

  it('is one line where it is not drawn', () => {
    expect(lineOf(RUNNING)).toBe(
      'c00000000000000000g0 running: Sending 1,204 letters back: 300 sent, 3 skipped, 1 failed, 900 to go. 48.3 letters a second, at most 50 a second to each destination, 19s left',
    )
    expect(lineOf(at({ state: 'paused', note: 'a\u001b[2Jb' }))).toContain('Paused: a\\x1b[2Jb.')
  })
})

it('the account of one that is over says no pace', () => {
  expect(
    accountOf(at({ state: 'done', action: 'discard', counts: { planned: 2, sent: 2 }, rateNow: 3 })),
  ).toBe('Discarded 2 letters.\n2 planned = 2 discarded + 0 skipped + 0 failed + 0 remaining')
})
