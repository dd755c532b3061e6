/** The first minutes: the commands that the overview of a fresh server shows are run as they stand, and each step is ticked. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { LetterClient } from '../../src/client/index.ts'
import { describeBrowser, openView, type View } from '../world/browser.ts'
import { type ServerHere, startServer } from '../world/server.ts'
import { type FreshStore, freshSqlite } from '../world/stores.ts'

const BIN = fileURLToPath(new URL('../../bin/bartleby.js', import.meta.url))

describeBrowser('the first steps on a fresh server', () => {
  let store: FreshStore
  let server: ServerHere
  let view: View
  beforeAll(async () => {
    store = await freshSqlite()
    server = await startServer({ store: store.url, testApi: false })
    view = await openView(server.url)
  })
  afterAll(async () => {
    await view?.close()
    await server?.stop()
    await store?.dispose()
  })

  /** What somebody does who copies it into a shell. */
  const run = (command: string) =>
    promisify(execFile)('bash', [
      '-ec',
      `bartleby() { "${process.execPath}" "${BIN}" "$@"; }; export BARTLEBY_URL=${server.url}\n${command}`,
    ])

  it('make letters, a retry and a redrive, by the commands that are shown', async () => {
    const { page } = view
    await page.goto('/')
    const steps = page.getByRole('region', { name: 'First steps' })
    const done = steps.getByText('✓ done')
    const next = async () => (await steps.locator('.command pre').first().textContent()) ?? ''
    for (const [ticked, words] of ['queues create hello', 'letters retry hello', 'redrive plan'].entries()) {
      await expect.poll(() => done.count()).toBe(ticked)
      await expect.poll(next).toContain(words)
      // The row key of a letter that is there, once there is one.
      await expect.poll(next).not.toContain('ROWKEY')
      await run(await next())
      await page.reload()
    }
    await expect.poll(() => done.count()).toBe(3)
    expect((await new LetterClient({ url: server.url }).counts({ engine: 'hello' })).totals).toEqual({
      Pending: 0,
      Resolved: 3,
      Expired: 0,
    })
  })
})
