/** The screen of a storage account, and what the page of one of its letters says that its case file does not. */
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Gate, gateTo } from '../world/azure-gate.ts'
import { AzureWorld } from '../world/azure-world.ts'
import { type Azurite, startAzurite, whyNoAzurite } from '../world/azurite.ts'
import { describeBrowser, openView, type View } from '../world/browser.ts'
import { type ServerHere, startServer } from '../world/server.ts'
import { freshSqlite } from '../world/stores.ts'

describeBrowser('the console of an office with a storage account', () => {
  describe.skipIf(whyNoAzurite !== null)(`in Azurite${whyNoAzurite ?? ''}`, () => {
    let azurite: Azurite
    let gate: Gate
    let world: AzureWorld
    let server: ServerHere
    let view: View
    beforeAll(async () => {
      azurite = await startAzurite()
    })
    afterAll(() => azurite.stop())
    beforeEach(async () => {
      gate = await gateTo(azurite.ports)
      world = await AzureWorld.open(azurite, { name: 'sqlite', fresh: freshSqlite }, gate)
      const { dlqTableName, historyTableName, storageAccountName, connectionStringFile } = world.settings
      const tables = {
        dlqTableName,
        historyTableName,
        storageAccountName,
        connectionStringFile,
        pollSeconds: 1,
      }
      const config = join(dirname(connectionStringFile ?? ''), 'bartleby.json')
      await writeFile(config, JSON.stringify({ engines: { tables } }))
      server = await startServer({ store: 'sqlite::memory:', config })
      view = await openView(server.url)
    })
    afterEach(async () => {
      gate.decide(() => 'pass')
      await view.close()
      await server.stop()
      await world.close()
      await gate.close()
    })

    it('shows the account, its tables and engines, and what is not yet written or nobody knows', async () => {
      const { page } = view
      const { rowKey } = await world.fail({ rowKey: 'inst 7 ü' })
      await page.goto('/')
      await page.getByRole('link', { name: 'Azure tables' }).click()
      await page.getByText('The account answers').waitFor()
      await page.getByText('devstoreaccount1').waitFor()
      await page.getByRole('row', { name: /hmac/ }).waitFor()
      await page.getByRole('row', { name: RegExp(world.settings.dlqTableName) }).waitFor()

      gate.decide(({ service, method }) => (service === 'queues' && method === 'POST' ? 'deaf' : 'pass'))
      await fetch(`${server.url}/api/dlq/hmac/${encodeURIComponent(rowKey)}/retry`, { method: 'POST' })
      await page.getByText('1 letter may be on the way, or not').waitFor()
      await page.getByRole('link', { name: '1 pending letters of hmac' }).click()
      await page.getByText('connection refused').first().waitFor()
      await page.goto(`/letters/hmac/${encodeURIComponent(rowKey)}`)
      await page.getByText(`bartleby azure settle hmac '${rowKey}'`).waitFor()

      gate.decide(() => 'away')
      const { letter } = (await server.office.letters.get({ engine: 'hmac', rowKey })) ?? {}
      await server.office.azure?.settleUncertain(letter.id, true, 'nell')
      await page.goto('/sources/azure')
      await page.getByText('The account does not answer as it should').waitFor()
      await page.getByText(/^1 act, the oldest of/).waitFor()
      await page.goto(`/letters/hmac/${encodeURIComponent(rowKey)}`)
      await page.getByText(/^Not yet written to its entity in Azure, since/).waitFor()
      expect(await page.getByRole('heading', { level: 1 }).count()).toBe(1)
    })
  })
})
