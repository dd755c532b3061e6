import { describe, expect, it } from 'vitest'
import { redriveAt } from '../../../test/world/redrive.ts'
import { redriveFields } from '../../redrive/view.ts'
import { processTerminal, type Terminal } from '../../terminal/terminal.ts'
import { displayOn } from './start.ts'

const at = (sent: number, state: 'running' | 'paused' = 'running') => {
  const redrive = redriveAt({ state, counts: { planned: 10, sent } })
  return redriveFields(redrive, redrive.plannedAt)
}

const UP = [3, 4, 5].map((rows) => `\u001b[${rows}A`)

describe('a redrive that is watched', () => {
  it('is drawn over itself on a terminal, and leaves it clean', () => {
    const drawn: string[] = []
    const none = () => () => {}
    const screen = {
      columns: 80,
      rows: 24,
      draw: (text: string) => void drawn.push(text),
      onResize: none,
      onKey: none,
    }
    const display = displayOn({ ...processTerminal, env: { NO_COLOR: '1' }, screen }, {})
    display.show(at(0))
    display.show(at(5))
    display.trouble('connection refused')
    display.end()
    // Each goes up as far as the one before it reached; what was sent has a sum of its own, and so has the trouble a line.
    expect(drawn.map((text) => UP.find((up) => text.startsWith(up)) ?? '')).toEqual(['', '', ...UP])
    expect(drawn[3]).toContain('no answer, trying on: connection refused')
    // Lines wrap again, and the cursor is there.
    expect(drawn[4]).toBe('\u001b[5A\r\u001b[J\u001b[?7h\u001b[?25h')
  })

  it('has no more lines than there are rows', () => {
    const drawn: string[] = []
    const none = () => () => {}
    const screen = {
      columns: 80,
      rows: 3,
      draw: (text: string) => void drawn.push(text),
      onResize: none,
      onKey: none,
    }
    displayOn({ ...processTerminal, screen }, {}).show(at(5))
    expect(drawn.at(-1)?.split('\r\n')).toHaveLength(3)
  })

  it('is told line by line anywhere else: another state at once, other numbers now and then', () => {
    const said: string[] = []
    let now = 0
    const terminal: Terminal = { ...processTerminal, screen: undefined, err: (text) => void said.push(text) }
    const display = displayOn(terminal, {}, () => now)
    display.show(at(0))
    display.show(at(1))
    display.show(at(1, 'paused'))
    now = 5_000
    display.show(at(1, 'paused'))
    display.show(at(2, 'paused'))
    display.trouble('away')
    display.trouble('away')
    display.show(at(2, 'paused'))
    display.trouble('away')
    expect(said.map((line) => line.replace(/^c0+g0 /, ''))).toEqual([
      expect.stringMatching(/^running: .* 0 sent, 10 to go\.$/),
      expect.stringMatching(/^paused: .* 1 of 10 /),
      expect.stringMatching(/^paused: .* 2 of 10 /),
      'no answer, trying on: away',
      'no answer, trying on: away',
    ])
  })

  it('is not seen where JSON is asked for', () => {
    const said: string[] = []
    displayOn(
      { ...processTerminal, screen: undefined, err: (text) => void said.push(text) },
      { json: true },
    ).show(at(1))
    expect(said).toEqual([])
  })
})
