/** One letter: what happened on the left, what it is on the right, what can be done on top. */

import { Group, Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { errorLine } from '../acts/error-line.ts'
import { letterQuery } from '../api/queries.ts'
import type { LetterDetail } from '../api/types.ts'
import { Page, Panel, Shown } from '../kit/page.tsx'
import { StatusBadge } from '../kit/status.tsx'
import { visible } from '../kit/visible.ts'
import { ErrorTab } from './error-tab.tsx'
import { HeadersTab } from './headers-tab.tsx'
import './letter.css'
import { LetterActsBar } from './letter-acts.tsx'
import { NoLetter } from './no-letter.tsx'
import { PayloadTab } from './payload-tab.tsx'
import { ProvenanceTab } from './provenance-tab.tsx'
import { RawTab } from './raw-tab.tsx'
import { SameKeyTab } from './same-key-tab.tsx'
import { StandingNote } from './standing-note.tsx'
import { TimelineList } from './timeline-list.tsx'

const route = getRouteApi('/letters/$engine/$rowKey')

interface Tab {
  readonly id: string
  readonly title: string
  show(letter: LetterDetail): ReactNode
}

const TABS: readonly Tab[] = [
  { id: 'error', title: 'Error', show: (letter) => <ErrorTab letter={letter} /> },
  { id: 'payload', title: 'Payload', show: (letter) => <PayloadTab letter={letter} /> },
  { id: 'headers', title: 'Headers', show: (letter) => <HeadersTab letter={letter} /> },
  { id: 'provenance', title: 'Provenance', show: (letter) => <ProvenanceTab letter={letter} /> },
  { id: 'same-key', title: 'Same key', show: (letter) => <SameKeyTab letter={letter} /> },
  { id: 'raw', title: 'Raw', show: (letter) => <RawTab letter={letter} /> },
]

export function LetterScreen() {
  const key = route.useParams()
  const read = useQuery(letterQuery(key))
  const letter = read.data
  return (
    <Page
      title={`${key.engine} ${visible(letter?.instanceId ?? key.rowKey)}`}
      {...(letter === undefined
        ? {}
        : {
            lead: (
              <Group gap="xs" wrap="nowrap" align="flex-start" mt={2} className="lead">
                <StatusBadge letter={letter} />
                <span className="lead-error">{errorLine(letter)}</span>
              </Group>
            ),
            beside: <LetterActsBar letter={letter} />,
          })}
    >
      <Shown read={read} what="the letter" unknown={<NoLetter letter={key} />}>
        {(detail) => <CaseFile letter={detail} />}
      </Shown>
    </Page>
  )
}

function CaseFile({ letter }: { readonly letter: LetterDetail }) {
  const { tab } = route.useSearch()
  const navigate = useNavigate()
  const { engine, rowKey } = letter
  const shown = TABS.find(({ id }) => id === tab)?.id ?? 'error'
  const choose = (id: string | null) =>
    void navigate({
      to: '/letters/$engine/$rowKey',
      params: { engine, rowKey },
      search: id === null || id === 'error' ? {} : { tab: id },
      replace: true,
    })
  return (
    <>
      <StandingNote letter={letter} />
      <div className="case-file">
        <Panel title="Timeline">
          <TimelineList letter={letter} />
        </Panel>
        <Panel>
          <Tabs value={shown} onChange={choose} keepMounted={false}>
            <Tabs.List mb="md" aria-label="What it is">
              {TABS.map(({ id, title }) => (
                <Tabs.Tab key={id} value={id}>
                  {title}
                </Tabs.Tab>
              ))}
            </Tabs.List>
            {TABS.map(({ id, show }) => (
              <Tabs.Panel key={id} value={id}>
                {show(letter)}
              </Tabs.Panel>
            ))}
          </Tabs>
        </Panel>
      </div>
    </>
  )
}
