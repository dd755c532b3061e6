/** Queues in the browser. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeBrowser, openView } from '../world/browser.ts'
import { type ConsoleOffice, openConsoleOffice } from './office.ts'

describeBrowser('the queues of the console', () => {
  let office: ConsoleOffice

  beforeAll(async () => {
    office = await openConsoleOffice()
  })

  afterAll(() => office?.close())

  it('are created with their dead queue, which may be missing', async () => {
    const { page, close } = await openView(office.url)
    await page.goto('/sources/queues')
    await page.getByRole('button', { name: 'Create a queue' }).click()
    const form = page.getByRole('dialog')
    await form.getByLabel('Name').first().fill('orders')
    await form.getByLabel('Life of an item').fill('48h')
    await form.getByLabel('Dead queue').fill('orders-dead')
    await form.getByRole('button', { name: 'Create', exact: true }).click()
    await page
      .getByText('Queue orders is there, and its dead queue orders-dead with the same times')
      .waitFor()
    expect(await office.queues.info('orders-dead')).toMatchObject({
      leaseTimeout: '1m0s',
      expireTimeout: '48h0m0s',
    })
    expect(await office.queues.info('orders')).toMatchObject({ deadQueue: 'orders-dead' })
    await close()
  })
})
