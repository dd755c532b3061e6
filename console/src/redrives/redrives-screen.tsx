/** Redrives: acts on many letters that the server carries out, running and past, and its runs over dead webhooks. */
import { Stack, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { pastRedrivesQuery } from '../api/redrive-queries.ts'
import type { Redrive } from '../api/redrive-types.ts'
import { LettersLink } from '../kit/links.tsx'
import { Empty, Page, Shown } from '../kit/page.tsx'
import { PageTurner, usePages } from '../kit/page-turner.tsx'
import { useSession } from '../kit/role.tsx'
import { useSteady } from '../kit/steady.ts'
import { RedriveCard } from './redrive-card.tsx'
import './redrives.css'
import { useActiveRedrives } from './use-redrives.ts'
import { WebhookRuns } from './webhook-runs.tsx'

const keyOf = ({ id }: Redrive) => id
const NONE: readonly Redrive[] = []

export function RedrivesScreen() {
  const { sources } = useSession()
  const active = useActiveRedrives()
  const pages = usePages('past')
  const past = useQuery(pastRedrivesQuery(pages.token))
  // What ends while somebody is on it stays where it is, and says so.
  const { rows, hold } = useSteady('running', active.data?.items ?? NONE, keyOf)
  const ended = new Map(past.data?.items.map((redrive) => [redrive.id, redrive]))
  const running = rows.map((redrive) => ended.get(redrive.id) ?? redrive)
  const shown = new Set(rows.map(keyOf))
  return (
    <Page
      title="Redrives"
      lead="Acts on many letters, planned first and carried out by the server: they continue without a browser, and after a restart."
    >
      <Shown read={active} what="what is running">
        {() =>
          running.length > 0 && (
            <div {...hold}>
              <Cards title="Running" redrives={running} />
            </div>
          )
        }
      </Shown>
      <Shown read={past} what="past redrives">
        {({ items, continuationToken }) => (
          <>
            {items.length === 0 && pages.number === 1 && running.length === 0 && <Nothing />}
            <Cards title="Past" redrives={items.filter(({ id }) => !shown.has(id))} />
            <PageTurner pages={pages} next={continuationToken} rows={items.length} />
          </>
        )}
      </Shown>
      {sources.webhooks && <WebhookRuns />}
    </Page>
  )
}

function Nothing() {
  return (
    <Empty title="No redrives yet.">
      <span className="prose">
        Choose several <LettersLink filter={{ status: 'Pending' }}>pending letters</LettersLink>, or a
        signature, and press Retry.
      </span>
    </Empty>
  )
}

function Cards({ title, redrives }: { readonly title: string; readonly redrives: readonly Redrive[] }) {
  if (redrives.length === 0) return null
  return (
    <Stack component="section" aria-label={title} gap="sm">
      <Title order={2} size="h5">
        {title}
      </Title>
      {redrives.map((redrive) => (
        <RedriveCard key={redrive.id} redrive={redrive} />
      ))}
    </Stack>
  )
}
