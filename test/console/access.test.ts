/** Who may see and do what: sign-in, roles, sessions that end, and a cookie that is of no use to other sites. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeBrowser, openView, type View } from '../world/browser.ts'
import { type ConsoleOffice, deadRotations, openConsoleOffice, reportedFailures, TOKENS } from './office.ts'

describeBrowser('a console with tokens', () => {
  let office: ConsoleOffice
  let letterPath: string

  beforeAll(async () => {
    office = await openConsoleOffice({ withTokens: true })
    await reportedFailures(office, 2)
    const { items } = await office.letters.list({ engine: 'http' })
    letterPath = `/letters/http/${encodeURIComponent(items[0]?.rowKey ?? '')}`
  })

  afterAll(() => office?.close())

  async function signedIn(role: keyof typeof TOKENS): Promise<View> {
    const view = await openView(office.url)
    await view.page.goto('/')
    await view.page.getByLabel('Token', { exact: true }).fill(TOKENS[role])
    await view.page.getByRole('button', { name: 'Sign in' }).click()
    await view.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    return view
  }

  it('shows nothing before a token, and says when one is wrong', async () => {
    const view = await openView(office.url)
    const { page } = view
    await page.goto(letterPath)
    await page.getByLabel('Token', { exact: true }).fill('not-a-token')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    expect(await page.getByText('Cannot read properties').count()).toBe(0)
    await page.getByLabel('Token', { exact: true }).fill(TOKENS.operator)
    await page.getByRole('button', { name: 'Sign in' }).click()
    // The page that was asked for, not the first one.
    await page.getByRole('region', { name: 'Payload' }).waitFor()
    await view.close()
  })

  it('keeps the session where scripts cannot read it and other sites cannot use it', async () => {
    const { page, close } = await signedIn('operator')
    const [cookie] = await page.context().cookies()
    expect(cookie).toMatchObject({ name: 'bartleby_session', httpOnly: true, sameSite: 'Strict', path: '/' })
    expect(await page.evaluate(() => document.cookie)).toBe('')
    const foreign = await fetch(`${office.url}/api/dlq/expire`, {
      method: 'POST',
      headers: {
        cookie: `${cookie?.name}=${cookie?.value}`,
        origin: 'https://elsewhere.example',
        'content-type': 'application/json',
      },
      body: '{"olderThanDays":1}',
    })
    expect(foreign.status).toBe(403)
    await close()
  })

  it('lets a viewer look, and says why nothing can be done', async () => {
    const { page, close } = await signedIn('viewer')
    await page.goto(letterPath)
    const retry = page.getByRole('button', { name: 'Retry', exact: true })
    await retry.waitFor()
    expect(await retry.getAttribute('aria-disabled')).toBe('true')
    await retry.focus()
    await page.getByRole('tooltip').getByText('Needs the role operator; yours is viewer.').waitFor()
    await retry.click({ force: true })
    expect((await office.letters.counts({ engine: 'http', status: 'Pending' })).totals.Pending).toBe(2)
    await page.goto('/settings')
    await page
      .getByText(/viewer/)
      .first()
      .waitFor()
    expect(await page.getByText('operator-person').count()).toBe(0)
    await close()
  })

  it('lets a viewer watch a redrive, and says why it cannot be halted', async () => {
    await deadRotations(office, 2)
    const { id } = await office.redrives.plan({ filter: { engine: 'hmac' }, action: 'retry', rate: 0.01 })
    await office.redrives.start(id)
    const { page, close } = await signedIn('viewer')
    await page.goto('/redrives')
    const pause = page.getByRole('button', { name: 'Pause', exact: true })
    await pause.waitFor()
    expect(await pause.getAttribute('aria-disabled')).toBe('true')
    expect(await pause.getAttribute('aria-description')).toContain('Needs the role operator')
    await close()
    await office.redrives.cancel(id)
  })

  it('lets an operator act in their own name', async () => {
    const { page, close } = await signedIn('operator')
    await page.goto(letterPath)
    await page.getByRole('button', { name: 'Discard…' }).click()
    await page.getByRole('textbox', { name: 'Why' }).fill('seen by a person')
    await page.getByRole('dialog').getByRole('button', { name: 'Discard' }).click()
    await page.getByText('operator-person').first().waitFor()
    await close()
  })

  it('shows tokens to an admin, and ends with a sign-out', async () => {
    const { page, close } = await signedIn('admin')
    await page.goto('/settings')
    await page.getByText('viewer-person').waitFor()
    await page.getByRole('button', { name: 'admin-person' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    expect((await page.request.get('/api/counts')).status()).toBe(401)
    await close()
  })
})
