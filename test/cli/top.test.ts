/** `bartleby top` on a terminal: it draws, follows, bears a server that goes away, and leaves the screen as it was. */
import { afterEach, describe, expect, it } from 'vitest'
import { LetterClient } from '../../src/client/index.ts'
import { type ServerHere, startServer } from '../world/server.ts'
import { bartleby } from '../world/terminal-double.ts'

let server: ServerHere | undefined

afterEach(() => server?.stop())

function terminal() {
  const drawn: string[] = []
  const listening = { key: (_: string) => {}, resize: () => {}, ended: 0 }
  const end = () => {
    listening.ended += 1
  }
  const screen = {
    columns: 100,
    rows: 30,
    draw: (text: string) => void drawn.push(text),
    onResize: (listener: () => void) => {
      listening.resize = listener
      return end
    },
    onKey: (listener: (key: string) => void) => {
      listening.key = listener
      return end
    },
  }
  return { drawn, listening, screen }
}

describe('top', () => {
  it('redraws what changes, says when the server is away, and leaves at q', async () => {
    server = await startServer({ store: 'sqlite::memory:', testApi: false })
    const { drawn, listening, screen } = terminal()
    const env = { BARTLEBY_URL: server.url }
    const watching = bartleby(['top', '--interval', '0.1'], { env, screen })
    const last = () => drawn.at(-1) ?? ''
    await expect.poll(last).toContain('0 pending')
    await new LetterClient({ url: server.url }).capture({
      engine: 'hmac',
      sourceId: 's',
      originalMessage: 'm',
      errorMessage: 'connection reset',
    })
    await expect.poll(last).toContain('1 pending')
    screen.rows = 5
    listening.resize()
    expect(last().split('\r\n')).toHaveLength(5)
    await server.stop()
    await expect.poll(last).toMatch(/no answer for \d+s, trying on: .*ECONNREFUSED/)
    listening.key('q')
    expect((await watching).code).toBe(0)
    expect(drawn[0]).toContain('\u001b[?1049h')
    expect(last()).toContain('\u001b[?1049l')
    expect(listening.ended).toBe(2)
  })

  it('leaves at Ctrl-C also while nobody answers', async () => {
    const { drawn, listening, screen } = terminal()
    const watching = bartleby(['top'], { env: { BARTLEBY_URL: 'http://127.0.0.1:9' }, screen })
    await expect.poll(() => drawn.at(-1)).toContain('127.0.0.1:9')
    listening.key('\u0003')
    expect((await watching).code).toBe(0)
    expect(drawn.at(-1)).toContain('\u001b[?1049l')
  })
})
