/** Redrives in a real browser, on a real server: planned, tried with a few, steered, repaired, and not bound to their tab. */
import type { Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { describeBrowser, openView, pictureOfFailure, type View } from '../world/browser.ts'
import { type ConsoleOffice, clearRotations, deadRotations, openConsoleOffice } from './office.ts'

const TITLE = /TimeoutError: connect ETIMEDOUT/
const PENDING = '/letters?query=engine%3Ahmac%20status%3Apending'

describeBrowser('a redrive', () => {
  let office: ConsoleOffice
  /** One window for all of them, whose scripts are loaded once; every test begins with a page of its own in it. */
  let view: View
  let page: Page
  let complaintsBefore = 0

  beforeAll(async () => {
    office = await openConsoleOffice()
    view = await openView(office.url)
    page = view.page
  })

  afterAll(async () => {
    await view?.close()
    await office?.close()
  })

  beforeEach(async () => {
    office.fail()
    await clearRotations(office)
    complaintsBefore = view.complaints.length
  })

  afterEach(async ({ task }) => {
    if (task.result?.state === 'fail') await pictureOfFailure({ ...view, page }, task.name)
    // The browser tells of calls that were refused, too: here some are meant to be.
    const complaints = view.complaints.slice(complaintsBefore)
    expect(complaints.filter((each) => !each.includes('status of 400'))).toEqual([])
  })

  const line = () => page.getByRole('region', { name: 'Redrives' })
  const dialog = (name: string) => page.getByRole('dialog', { name })
  const pendingRotations = async () =>
    (await office.letters.counts({ engine: 'hmac', status: 'Pending' })).totals.Pending

  /** Opens the plan for all pending letters of the worker. */
  async function planOf(act: 'Retry' | 'Move' | 'Discard'): Promise<Locator> {
    await page.goto(PENDING)
    await page.locator('main tbody tr').first().waitFor()
    await page.keyboard.press('*')
    await page.getByRole('button', { name: `${act}…` }).click()
    return dialog(`Plan a ${act.toLowerCase()}`)
  }

  /** The words on what has the focus. */
  const focused = () => page.evaluate(() => document.activeElement?.textContent)

  /** The newest redrive that was started. */
  async function newest() {
    const { items } = await office.redrives.list({ limit: 1 })
    const [redrive] = items
    if (redrive === undefined) throw new Error('nothing was started')
    return redrive
  }

  it('of a signature tries a few first, sends the rest, and tells what was confirmed', async () => {
    await deadRotations(office, 12)
    await page.goto('/signatures')
    await page
      .getByRole('row', { name: TITLE })
      .getByRole('button', { name: /^Retry…/ })
      .click()
    const plan = dialog('Plan a retry')
    await plan.getByText('Send 12 letters back to hmac-rotation-queue').waitFor()
    await plan.getByText('12 match = 12 in the plan').waitFor()
    // The first letters as they would be sent, byte for byte.
    await plan.getByText('hmac instance-0').click()
    await plan.getByText('9007199254740993').first().waitFor()
    await plan.getByLabel('Reason').fill('the key vault is back')
    await plan.getByLabel('Try first (canary)').fill('3')
    expect(await plan.locator('.command').textContent()).toMatch(
      /^bartleby redrive plan .* --action retry --canary 3 --reason 'the key vault is back' --start/,
    )
    office.mend()
    await plan.getByRole('button', { name: 'Retry 12' }).click()
    await line().getByText('12 sent · 12 confirmed · 0 returned · 0 left').waitFor()
    expect(await pendingRotations()).toBe(0)
    expect(await newest()).toMatchObject({
      state: 'done',
      canary: { letters: 3 },
      reason: 'the key vault is back',
    })
  })

  it('stops when the first letters come back, and says why', async () => {
    await deadRotations(office, 6)
    const plan = await planOf('Retry')
    await plan.getByRole('button', { name: /^Try ten first/ }).click()
    // The focus goes to what it filled in.
    await page.keyboard.press('ControlOrMeta+A')
    await page.keyboard.type('2')
    expect(await plan.getByLabel('Try first (canary)').inputValue()).toBe('2')
    await plan.getByRole('button', { name: 'Retry 6' }).click()
    await line()
      .getByText(/^Stopped: /)
      .waitFor()
    await line()
      .getByRole('link', { name: /^Stopped: / })
      .click()
    await page.getByRole('heading', { level: 1, name: 'Retry of 6 letters' }).waitFor()
    await page.getByText('2 sent = 0 confirmed + 2 returned + 0 unconfirmed').waitFor()
    // Every number leads to its letters.
    await page.getByRole('link', { name: '4 left' }).click()
    const letters = page.getByRole('region', { name: 'Letters' })
    await letters.getByRole('cell', { name: 'Remaining' }).first().waitFor()
    expect(await letters.locator('tbody tr').count()).toBe(4)
    await letters.getByLabel('Outcome').selectOption('returned')
    await letters.getByRole('cell', { name: 'Returned' }).first().waitFor()
    expect(await letters.locator('tbody tr').count()).toBe(2)
    await page.getByRole('link', { name: 'History of this redrive' }).click()
    await page.getByRole('heading', { level: 1, name: 'History' }).waitFor()
    await page.locator('main tbody tr').first().waitFor()
  })

  it('goes on without the tab that started it, and is paused, slowed, resumed and cancelled by others', async () => {
    await deadRotations(office, 20)
    const plan = await planOf('Retry')
    await plan.getByLabel('Rate per destination').fill('1')
    office.mend()
    await plan.getByRole('button', { name: 'Retry 20' }).click()
    await line()
      .getByText(/ left$/)
      .first()
      .waitFor()
    const starter = page
    page = await starter.context().newPage()
    await starter.close()
    await page.goto('/')
    await page.getByRole('link', { name: '1 running redrive' }).waitFor()
    await line().getByRole('button', { name: 'Pause' }).click()
    await line().getByRole('button', { name: 'Resume' }).waitFor()
    const { sent } = (await newest()).counts
    expect(sent).toBeLessThan(20)
    await page.goto('/redrives')
    const running = page.getByRole('region', { name: 'Running' })
    await running.getByRole('button', { name: 'Resume' }).press('Enter')
    await running.getByRole('button', { name: 'Pause' }).waitFor()
    await expect.poll(focused).toBe('Pause')
    await running.getByRole('button', { name: 'Change rate…' }).click()
    await dialog('Change the rate').getByLabel('Rate per destination').fill('2')
    await page.keyboard.press('Enter')
    await expect.poll(async () => (await newest()).rate).toBe(2)
    await running.getByRole('button', { name: 'Cancel…' }).click()
    const question = page.getByRole('dialog', { name: 'Cancel: Retry of 20 letters' })
    await question.getByLabel('Reason').fill('enough seen')
    await question.getByRole('button', { name: 'Cancel the redrive' }).click()
    await page.getByRole('link', { name: /^Cancelled: enough seen/ }).waitFor()
    // What had the focus is gone with it: what is there instead has it.
    await expect.poll(focused).toBe('Plan the rest…')
    const { counts, state } = await newest()
    expect(state).toBe('cancelled')
    expect(counts.sent + counts.remaining).toBe(20)
    expect(await pendingRotations()).toBe(counts.remaining)
  })

  it('discards many only with a reason, and with their number typed', async () => {
    await deadRotations(office, 3)
    const plan = await planOf('Discard')
    await plan.getByText(/Give a reason, then plan/).waitFor()
    await page.keyboard.press('Escape')
    await expect.poll(focused).toBe('Discard…')
    await page.keyboard.press('Enter')
    await plan.getByLabel('Reason').fill('test data')
    await plan.getByRole('button', { name: 'Plan it' }).click()
    await plan.getByText('3 match = 3 in the plan').waitFor()
    await expect.poll(focused).toBe('Plan again')
    const discard = plan.getByRole('button', { name: 'Discard 3' })
    expect(await discard.getAttribute('aria-disabled')).toBe('true')
    await plan.getByLabel('Type 3 to discard them').fill('3')
    await discard.click()
    await line().getByText('3 discarded · 0 left').waitFor()
    const { items } = await office.letters.list({ engine: 'hmac', status: 'Resolved', limit: 1 })
    expect(items[0]).toMatchObject({
      resolution: 'discard',
      resolutionNotes: expect.stringContaining('test data'),
    })
  })

  it('repairs letters on the way, shows what that changes, and says at the field what is wrong with it', async () => {
    await deadRotations(office, 2)
    const plan = await planOf('Retry')
    await plan.getByText('2 match = 2 in the plan').waitFor()
    await plan.getByText(/^Repair on the way/).click()
    await plan.getByText('JSON Patch', { exact: true }).click()
    const patch = plan.getByRole('textbox', { name: 'JSON Patch' })
    await patch.fill('[{"op":"replace","path":"serial","value":1}]')
    await plan.getByRole('button', { name: 'Plan again' }).click()
    await plan
      .getByRole('alert')
      .getByText(/repair\.patch\[0\]\.path/)
      .waitFor()
    expect(await patch.getAttribute('aria-invalid')).toBe('true')
    await patch.fill('[{"op":"replace","path":"/serial","value":9007199254740995}]')
    await plan.getByRole('button', { name: 'Plan again' }).click()
    const sample = plan.getByRole('region', { name: 'First letters of the plan' })
    await sample.getByText('9007199254740993').waitFor()
    await sample.getByText('9007199254740995').waitFor()
    office.mend()
    await plan.getByRole('button', { name: 'Retry 2' }).click()
    await line().getByText('2 sent · 2 confirmed · 0 returned · 0 left').waitFor()
    const { id } = await newest()
    await page.goto(`/redrives/${id}`)
    await page.getByRole('region', { name: 'Repair' }).getByText('9007199254740995').waitFor()
  })

  it('moves letters to another queue', async () => {
    await office.queues.create({
      queueName: 'parked',
      requestedPartitions: 1,
      leaseTimeout: '1m',
      expireTimeout: '1h',
    })
    await deadRotations(office, 2)
    const plan = await planOf('Move')
    await plan.getByLabel('To queue').fill('parked')
    await page.keyboard.press('Escape')
    await plan.getByRole('button', { name: 'Plan it' }).click()
    await plan.getByText('Move 2 letters to parked').waitFor()
    await plan.getByRole('button', { name: 'Move 2' }).click()
    await line()
      .getByText(/^2 moved · .*0 left$/)
      .waitFor()
  })
})
