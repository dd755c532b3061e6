/** The overview: where the office stands, what changed, and where to begin. Everything on it is asked for at once. */
import './overview.css'
import { Grid, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { activityQuery, overviewQuery } from '../api/queries.ts'
import { RANGES, type SeriesName } from '../api/types.ts'
import { ActivityChart } from '../kit/activity-chart.tsx'
import { Page, Trouble } from '../kit/page.tsx'
import { SourcesPanel } from './sources-panel.tsx'
import { Tiles } from './tiles.tsx'
import { TopSignatures } from './top-signatures.tsx'

const route = getRouteApi('/')
const LINES: readonly SeriesName[] = ['arrived', 'retried', 'confirmed', 'discarded']
const DEFAULT_RANGE = '24h'

export function OverviewScreen() {
  const { range = DEFAULT_RANGE } = route.useSearch()
  const navigate = route.useNavigate()
  const overview = useQuery(overviewQuery)
  const activity = useQuery(activityQuery(range))
  return (
    <Page title="Overview">
      <Stack gap="md">
        {overview.data === undefined && overview.error !== null ? (
          <Trouble error={overview.error} retry={() => void overview.refetch()} />
        ) : (
          <Tiles overview={overview.data} />
        )}
        <Grid gap="md">
          <Grid.Col span={{ base: 12, lg: 8 }}>
            <ActivityChart
              read={activity}
              names={LINES}
              range={range}
              ranges={RANGES}
              setRange={(chosen) =>
                void navigate({
                  search: chosen === DEFAULT_RANGE ? {} : { range: chosen },
                  replace: true,
                  resetScroll: false,
                })
              }
            />
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 4 }}>
            <SourcesPanel sources={overview.data?.sources} />
          </Grid.Col>
        </Grid>
        <TopSignatures />
      </Stack>
    </Page>
  )
}
