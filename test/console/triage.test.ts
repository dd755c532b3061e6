/** Triage in a real browser, on a real server: from "how many" to "they arrived", with the mouse and with the keyboard alone. */
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { describeBrowser, openView, pictureOfFailure, type View } from '../world/browser.ts'
import {
  type ConsoleOffice,
  clearRotations,
  deadRotations,
  openConsoleOffice,
  reportedFailures,
} from './office.ts'

const TITLE = /TimeoutError: connect ETIMEDOUT/

describeBrowser('triage', () => {
  let office: ConsoleOffice
  /** One window for all of them, whose scripts are loaded once. */
  let view: View
  let page: Page
  let complaintsBefore = 0

  beforeAll(async () => {
    office = await openConsoleOffice()
    await reportedFailures(office, 8)
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
    if (task.result?.state === 'fail') await pictureOfFailure(view, task.name)
    expect(view.complaints.slice(complaintsBefore)).toEqual([])
  })

  const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name })
  const button = (name: string | RegExp) => page.getByRole('button', { name })
  /** Rows of the one table on the screen, without its heading. */
  const rows = () => page.locator('main tbody tr')
  const pendingRotations = async () =>
    (await office.letters.counts({ engine: 'hmac', status: 'Pending' })).totals.Pending

  it('leads from the overview over a letter to a retry, and says that it was confirmed', async () => {
    await deadRotations(office, 3)
    await page.goto('/')
    await page.getByRole('link', { name: TITLE }).first().click()
    await heading(TITLE).waitFor()
    await rows().first().getByRole('link').first().click()
    // Exact, although JavaScript has no such number.
    await page.getByText('9007199254740993').first().waitFor()
    office.mend()
    await page.getByRole('button', { name: 'Retry', exact: true }).click()
    await page.getByText('Confirmed', { exact: true }).first().waitFor()
    expect(await pendingRotations()).toBe(2)
  })

  it('finds a cause in the palette, which Escape closes', async () => {
    await deadRotations(office, 1)
    await page.goto('/')
    await heading('Overview').waitFor()
    await page.keyboard.press('ControlOrMeta+K')
    const field = page.getByRole('combobox', { name: 'Command' })
    await field.waitFor()
    await page.keyboard.press('Escape')
    await field.waitFor({ state: 'detached' })
    await page.keyboard.press('ControlOrMeta+K')
    await field.fill('timeouterror')
    await page.getByRole('option', { name: TITLE }).first().waitFor()
    await page.keyboard.press('Enter')
    await heading(TITLE).waitFor()
  })

  it('is done with the keyboard alone', async () => {
    await deadRotations(office, 2)
    await page.goto('/')
    await heading('Overview').waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('s')
    await heading('Signatures').waitFor()
    await rows().first().waitFor()
    const place = (await rows().allTextContents()).findIndex((text) => TITLE.test(text))
    for (let row = 0; row <= place; row++) await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await heading(TITLE).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('l')
    await heading('Letters').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('engine:hmac status:pending')
    await page.keyboard.press('Enter')
    await page.getByText('2 letters match').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Retry', exact: true }).waitFor()
    office.mend()
    await page.keyboard.press('r')
    await page.getByText('Confirmed', { exact: true }).first().waitFor()
    await page.keyboard.press('Escape')
    await heading('Letters').waitFor()
    expect(await pendingRotations()).toBe(1)
    // All that match, planned and started from the field in which the plan begins.
    await page.keyboard.press('*')
    await page.keyboard.press('r')
    const plan = page.getByRole('dialog', { name: 'Plan a retry' })
    const start = plan.getByRole('button', { name: 'Retry 1' })
    await start.waitFor()
    for (let steps = 0; steps < 20; steps++) {
      await page.keyboard.press('Tab')
      if (await start.evaluate((each) => each === document.activeElement)) break
    }
    await page.keyboard.press('Enter')
    await expect.poll(pendingRotations).toBe(0)
  })

  it('edits a payload, shows what differs and what would be sent, and sends that', async () => {
    await deadRotations(office, 1)
    const { items } = await office.letters.list({ engine: 'hmac', status: 'Pending', limit: 1 })
    const [letter] = items
    if (letter === undefined) throw new Error('no letter waits')
    await page.goto(`/letters/${letter.engine}/${encodeURIComponent(letter.rowKey)}`)
    await page.getByRole('button', { name: 'Retry', exact: true }).waitFor()
    await page.keyboard.press('e')
    const editor = page.getByRole('textbox', { name: 'Payload to send' })
    await editor.fill('{"instanceId": "instance-0", "serial": }')
    await page.getByText(/JSON/).first().waitFor()
    await editor.fill('{"instanceId": "instance-0", "serial": 9007199254740995}')
    const difference = page.getByRole('region', { name: 'What differs' })
    await difference.getByText('9007199254740993').waitFor()
    await difference.getByText('9007199254740995').waitFor()
    office.mend()
    await button('Send the edited payload').click()
    await page.getByText('Confirmed', { exact: true }).first().waitFor()
    const sent = await office.letters.get(letter)
    expect(sent.editedMessage).toBe('{"instanceId": "instance-0", "serial": 9007199254740995}')
    expect(sent.originalMessage).toBe('{"instanceId": "instance-0", "serial": 9007199254740993}')
  })

  it('discards with a reason, and takes that back within ten seconds', async () => {
    const { items } = await office.letters.list({ engine: 'http', status: 'Pending', limit: 1 })
    const [letter] = items
    if (letter === undefined) throw new Error('no letter waits')
    const statusNow = async () => (await office.letters.get(letter)).status
    await page.goto(`/letters/${letter.engine}/${encodeURIComponent(letter.rowKey)}`)
    await button('Discard…').click()
    await page.getByRole('textbox', { name: 'Why' }).fill('a test order')
    await page.getByRole('dialog').getByRole('button', { name: 'Discard' }).click()
    await page.getByText('Discarded', { exact: true }).first().waitFor()
    expect(await statusNow()).toBe('Resolved')
    await button('Undo').click()
    await expect.poll(statusNow).toBe('Pending')
    await page.getByText('Pending', { exact: true }).first().waitFor()
  })

  it('keeps filters in the address, so that a link shows the same to others', async () => {
    await page.goto('/letters')
    await page.getByRole('textbox', { name: /query/i }).first().fill('engine:http error:"price must be"')
    await page.keyboard.press('Enter')
    await page.getByText('4 letters match').waitFor()
    const link = page.url()
    await page.goto('/')
    await page.goto(link)
    await page.getByText('4 letters match').waitFor()
    expect(await rows().count()).toBe(4)
    await page.goto('/letters?query=engin%3Ahttp')
    // A wrong word is explained, not ignored.
    await page.getByText(/engin/).first().waitFor()
    await page.goto('/letters?query=key%3Acustomer-1%20status%3Apending')
    await page.getByText(/letters match/).waitFor()
    expect(await rows().count()).toBe(3)
  })

  it('shows letters as they arrive, and holds still while something is selected', async () => {
    await page.goto('/letters?query=engine%3Ahmac%20status%3Apending')
    await page.getByRole('button', { name: /^Live/ }).waitFor()
    await deadRotations(office, 2)
    await page.getByText('2 letters match').waitFor()
    await rows().first().getByRole('checkbox').check()
    await deadRotations(office, 3)
    await button(/3 new/).waitFor()
    expect(await rows().count()).toBe(2)
    await button(/3 new/).click()
    await expect.poll(() => rows().count()).toBe(5)
    // What was chosen still is, wherever it is now.
    expect(await rows().nth(3).getByRole('checkbox').isChecked()).toBe(true)
  })

  it('asks every few seconds where events do not come through', async () => {
    // A view of its own: the browser complains about what does not come through.
    const cut = await openView(office.url)
    try {
      await cut.page.route('**/api/events', (route) => route.abort())
      await cut.page.clock.install()
      await cut.page.goto('/letters?query=engine%3Ahmac%20status%3Apending')
      await cut.page.getByRole('button', { name: /^Polling/ }).waitFor()
      await deadRotations(office, 2)
      await cut.page.clock.fastForward(6_000)
      await cut.page.getByText('2 letters match').waitFor()
    } finally {
      await cut.close()
    }
  })
})
