//! L4: what a process tells of itself, in metrics and in the history of its writes, is what it has
//! sent and what Azure has answered. Judged of lives that began while nothing went wrong: their
//! answers all arrive.

use super::tenants::is_refused;
use crate::stage::Stage;
use crate::tally::count;
use crate::weather::Weather;
use arm::{Answer, Method};
use control::{Controller, KubernetesCall, Outcome, ResourceKind, Tally, WriteOutcome};
use kube_emulator::ObjectRef;
use model::report::State;
use std::collections::BTreeMap;

/// What stands in the path of a write, and the resource's kind as metrics call it. The first one
/// counts.
const KINDS: [(&str, &str); 11] = [
    ("/updateservices", "gateway_services"),
    ("/updateaddresslocations", "gateway_locations"),
    ("/loadbalancers/", "load_balancer"),
    ("/publicipaddresses/", "public_ip"),
    ("/networksecuritygroups/", "security_group"),
    ("/subnets/", "subnet"),
    ("/privatelinkservices/", "private_link_service"),
    ("/natgateways/", "nat_gateway"),
    ("/networkinterfaces/", "network_interface"),
    ("/virtualmachines/", "scale_set_vm"),
    ("/virtualmachinescalesets/", "scale_set"),
];

/// One life of a process.
type Life = (usize, u64);

/// The calls of lives that began while nothing went wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    lives: BTreeMap<Life, Book>,
    /// When Azure last took a write of a load balancer or of a security group.
    pub(super) taken_ms: u64,
}

/// The calls of one life.
#[derive(Clone, Debug, Default)]
struct Book {
    /// Writes to Azure.
    writes: u64,
    /// Reads of Azure.
    reads: u64,
    /// Writes to the API server, Events not included.
    kubernetes: u64,
    /// Writes that Azure has answered, by their ids.
    written: BTreeMap<String, Written>,
    /// Reads by what came of them.
    read: BTreeMap<Outcome, u64>,
}

/// What came of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Written {
    method: &'static str,
    kind: &'static str,
    end: End,
    /// HTTP status; 0 where there was no answer.
    status: u16,
    /// Azure's error code, where its answer has one.
    code: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Succeeded,
    Stale,
    Failed,
}

impl Books {
    /// A call to Azure is about to be sent.
    pub(super) fn note_sending(&mut self, life: Life, method: Method) {
        let Some(book) = self.lives.get_mut(&life) else { return };
        if method.is_write() {
            book.writes += 1;
        } else {
            book.reads += 1;
        }
    }

    /// A call to the API server is about to be sent.
    pub(super) fn note_calling(&mut self, life: Life, request: &KubernetesCall) {
        let Some(book) = self.lives.get_mut(&life) else { return };
        let tells = request.method == "POST" && request.path.contains("/events");
        book.kubernetes += u64::from(request.method != "GET" && !tells);
    }

    /// Azure has answered a call of this path, in small letters, and this id.
    pub(super) fn note_answer(
        &mut self,
        life: Life,
        (method, path, id): (Method, &str, &str),
        answer: &Answer,
        now_ms: u64,
    ) {
        let leads = ["/loadbalancers/", "/networksecuritygroups/"];
        let took = matches!(answer, Answer::Reply(reply) if (200..300).contains(&reply.status));
        if method == Method::Put && took && leads.iter().any(|part| path.contains(part)) {
            self.taken_ms = now_ms;
        }
        let Some(book) = self.lives.get_mut(&life) else { return };
        let status = match answer {
            Answer::Reply(reply) => reply.status,
            Answer::Fault(_) => 0,
        };
        if method.is_write() {
            let kind =
                KINDS.iter().find(|(part, _)| path.contains(part)).map_or("", |(_, kind)| *kind);
            let end = match status {
                200..300 => End::Succeeded,
                // What is gone is deleted.
                404 if method == Method::Delete => End::Succeeded,
                412 => End::Stale,
                _ => End::Failed,
            };
            let (method, code) = (method.name(), code_of(answer));
            let written = Written { method, kind, end, status, code };
            book.written.insert(id.to_owned(), written);
            return;
        }
        let outcome = match status {
            200..300 | 404 => Outcome::Succeeded,
            429 => Outcome::Throttled,
            _ => Outcome::Failed,
        };
        count(&mut book.read, outcome);
        if let (Answer::Reply(reply), Some(written)) = (answer, book.written.get_mut(id)) {
            let body = reply.body.as_ref().map_or("", |body| body["status"].as_str().unwrap_or(""));
            if matches!(body, "Failed" | "Canceled") {
                (written.end, written.status) = (End::Failed, status);
                written.code = code_of(answer);
            }
        }
    }
}

/// The outermost error code of an answer.
fn code_of(answer: &Answer) -> Option<String> {
    let Answer::Reply(reply) = answer else { return None };
    let code = reply.body.as_ref()?["error"]["code"].as_str()?;
    (!code.is_empty()).then(|| code.to_owned())
}

impl Book {
    /// What a controller tells of this life that is not so.
    fn differs(&self, controller: &Controller) -> Option<String> {
        let counts = controller.counts();
        let failed = self.written.values().filter(|w| w.end != End::Succeeded).count() as u64;
        let locations = self.written.values().filter(|w| w.kind == "gateway_locations").count();
        let [services, addresses] = [controller.tally().services(), controller.tally().addresses()]
            .map(|sizes| sizes.counts().iter().sum::<u64>());
        let last = controller.history().next_back().map_or(0, |record| record.number);
        let counted = [
            ("writes to Azure", counts.writes, self.writes),
            ("writes in the history", last, self.writes),
            ("writes by their Services", services, self.writes),
            ("writes by their addresses", addresses, locations as u64),
            ("reads of Azure", counts.reads, self.reads),
            ("writes to Kubernetes", counts.kubernetes, self.kubernetes),
            ("writes to Azure that failed", counts.failures, failed),
        ];
        let wrong = counted.into_iter().find(|(_, told, were)| told != were);
        wrong
            .map(|(what, told, were)| format!("{told} {what} are counted, and there were {were}"))
            .or_else(|| self.writes_differ(controller.tally()))
            .or_else(|| self.reads_differ(controller.tally()))
            .or_else(|| self.history_differs(controller))
    }

    fn writes_differ(&self, tally: &Tally) -> Option<String> {
        const FAILED: [Outcome; 3] = [Outcome::Refused, Outcome::Throttled, Outcome::Failed];
        ResourceKind::WRITTEN.into_iter().find_map(|kind| {
            let told = [
                (End::Succeeded, tally.writes(kind, Outcome::Succeeded)),
                (End::Stale, tally.writes(kind, Outcome::Stale)),
                (End::Failed, FAILED.into_iter().map(|end| tally.writes(kind, end)).sum()),
            ];
            told.into_iter().find_map(|(end, told)| {
                let all = self.written.values().filter(|w| w.kind == kind.name() && w.end == end);
                let (were, kind) = (all.count() as u64, kind.name());
                let text = || format!("{told} writes of {kind} are {end:?}, and there were {were}");
                (told != were).then(text)
            })
        })
    }

    fn reads_differ(&self, tally: &Tally) -> Option<String> {
        Outcome::OF_READS.into_iter().find_map(|outcome| {
            let kinds = ResourceKind::WRITTEN.into_iter().chain(ResourceKind::READ_ALONE);
            let kinds = kinds.chain([ResourceKind::Other]);
            let told: u64 = kinds.map(|kind| tally.reads(kind, outcome)).sum();
            let were = self.read.get(&outcome).copied().unwrap_or(0);
            let name = outcome.name();
            (told != were).then(|| format!("{told} reads have {name}, and there were {were}"))
        })
    }

    fn history_differs(&self, controller: &Controller) -> Option<String> {
        controller.history().find_map(|record| {
            let written = self.written.get(&*record.correlation);
            let agrees = written.is_some_and(|written| {
                let ended = match &record.outcome {
                    WriteOutcome::UnderWay => false,
                    WriteOutcome::Done => written.end == End::Succeeded,
                    WriteOutcome::Failed { status, code, .. } => {
                        let answered = written.code.as_deref();
                        let same = written.status == *status
                            && answered.is_none_or(|answered| answered == &**code);
                        written.end != End::Succeeded && same
                    }
                };
                ended && written.method == record.method
            });
            let (method, name) = (record.method, record.target.name());
            let outcome = &record.outcome;
            (!agrees)
                .then(|| format!("the history has {method} {name} as {outcome:?}: {written:?}"))
        })
    }
}

impl Stage {
    /// A life of a process begins.
    pub(crate) fn open_book(&mut self, life: Life) {
        if matches!(self.weather, Weather::Fair) {
            self.ledger.books.lives.insert(life, Book::default());
        }
    }

    /// L4: what processes have counted, once nothing is under way.
    pub(crate) fn check_books(&mut self) {
        // A message that is spoilt on its way is counted on one side.
        if self.breach.is_some() || self.mutant.is_some() {
            return;
        }
        count(&mut self.tally.checks, "L4");
        let wrong = self.ledger.books.lives.iter().find_map(|((number, epoch), book)| {
            let process = self.processes.get(*number).filter(|p| p.epoch == *epoch)?;
            book.differs(&process.controller)
        });
        if let Some(text) = wrong {
            self.fail("L4", text);
        }
    }

    /// The life of the process that leads, and how many fields it has counted that another client
    /// had changed.
    pub(crate) fn drift_noticed(&self) -> Option<(Life, u64)> {
        let mut processes = self.processes.iter().enumerate();
        let (number, leader) = processes.find(|(_, process)| process.may_write(self.now_ms))?;
        Some(((number, leader.epoch), leader.controller.drift_noticed()))
    }

    /// L4: drift that was counted since, while no client has changed anything.
    pub(crate) fn check_peace(&mut self, before: Option<(Life, u64)>) {
        count(&mut self.tally.checks, "L4");
        let Some((life, fields)) = self.drift_noticed() else { return };
        let was = match before {
            // It has begun in peace.
            None => 0,
            Some((other, fields)) if other == life => fields,
            Some(_) => return,
        };
        if fields > was {
            let text = format!("{} fields are counted as drift in peace", fields - was);
            self.fail("L4", text);
        }
    }

    /// L4: a Service that counts as programmed, and whose condition says something else.
    pub(crate) fn miscounted(&self) -> Option<String> {
        let leader = self.processes.iter().find(|process| process.may_write(self.now_ms))?;
        let services = leader.controller.report().services.values();
        let mut programmed = services.filter(|service| service.state == State::Programmed);
        programmed.find_map(|service| {
            let full = service.name.to_string();
            let (namespace, name) = full.split_once('/')?;
            let object = self.kubernetes.get(ObjectRef::new("services", namespace, name)).ok()?;
            let told = is_refused(&object);
            told.then(|| format!("{full} counts as programmed, and its condition is False"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::neighbour::edit;
    use crate::scene::{Layout, objects};
    use serde_json::json;

    fn settled(layout: Layout) -> Stage {
        let mut stage = Stage::plain(layout, 1_500);
        stage.kill(0, "another life");
        stage.create(objects::service("default", 0));
        assert!(stage.settle(3_600_000));
        stage
    }

    #[test]
    fn what_is_counted_is_what_was_answered() {
        for layout in [Layout::Single, Layout::Nics, Layout::Containers] {
            let mut stage = settled(layout);
            stage.check_books();
            assert_eq!(stage.breach, None, "{layout:?}");
            assert_eq!(stage.miscounted(), None);
            let book = stage.ledger.books.lives.values().next().expect("a life was opened");
            assert!(book.writes > 0 && book.reads > 0 && book.kubernetes > 0, "{layout:?}");
        }
    }

    #[test]
    fn drift_is_counted_where_there_is_some() {
        let mut stage = settled(Layout::Single);
        stage.advance(stage.now_ms + 600_000);
        let noticed = stage.drift_noticed().map(|(_, fields)| fields);
        assert_eq!(noticed, Some(0), "nothing has changed");
        let balancer = crate::scene::network("loadBalancers/kubernetes");
        edit(&mut stage, &balancer, |balancer| {
            let rules = balancer["properties"]["loadBalancingRules"].as_array_mut();
            for rule in rules.into_iter().flatten() {
                rule["properties"]["idleTimeoutInMinutes"] = json!(9);
            }
        });
        stage.advance(stage.now_ms + 600_000);
        let noticed = stage.drift_noticed().map(|(_, fields)| fields);
        assert!(noticed > Some(0), "{noticed:?}");
    }

    #[test]
    fn what_is_not_counted_is_found() {
        type Spoil = fn(&mut Book);
        let spoils: [Spoil; 6] = [
            |book| book.writes += 1,
            |book| book.reads += 1,
            |book| book.kubernetes += 1,
            |book| count(&mut book.read, Outcome::Throttled),
            |book| {
                let mut written = book.written.values_mut();
                written.next().expect("something was written").kind = "gateway_locations";
            },
            |book| {
                let written = book.written.values_mut().next().expect("something was written");
                written.end = End::Stale;
            },
        ];
        for (at, spoil) in spoils.into_iter().enumerate() {
            let mut stage = settled(Layout::Single);
            stage.ledger.books.lives.values_mut().for_each(spoil);
            stage.check_books();
            assert_eq!(stage.breach.map(|breach| breach.rule), Some("L4"), "{at}");
        }
    }
}
